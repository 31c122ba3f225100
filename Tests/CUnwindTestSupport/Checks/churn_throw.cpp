// C++ exceptions: libgcc's unwinder gets the images from the dynamic linker.

#include <string>

#include "Checks/churn.h"

namespace {

struct Cleanup {
  int *count;
  ~Cleanup() { ++*count; }
};

[[gnu::noinline]] int descend(int frames, int *cleanups) {
  Cleanup cleanup{cleanups};
  if (frames == 0) throw std::string("thrown");
  return descend(frames - 1, cleanups) + 1;
}

}  // namespace

bool cunwind_test_throw_and_catch() {
  constexpr int frames = 8;
  int cleanups = 0;
  try {
    descend(frames, &cleanups);
  } catch (const std::string &text) {
    return text == "thrown" && cleanups == frames + 1;
  }
  return false;
}
