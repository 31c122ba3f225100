// C++ exceptions. libgcc unwinds them and asks the dynamic linker for the images.

#include <string>

#include "CDemo.h"

namespace {

constexpr int kFrames = 12;

struct Counted {
  int *count;
  ~Counted() { ++*count; }
};

[[gnu::noinline]] int throwBelow(int frames, int *cleanups) {
  Counted counted{cleanups};
  if (frames == 0) throw std::string("chaos");
  return throwBelow(frames - 1, cleanups) + 1;
}

}  // namespace

bool demo_throw_and_catch(void) {
  int cleanups = 0;
  try {
    throwBelow(kFrames, &cleanups);
  } catch (const std::string &text) {
    return text == "chaos" && cleanups == kFrames + 1;
  }
  return false;
}
