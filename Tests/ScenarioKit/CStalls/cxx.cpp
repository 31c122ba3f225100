#include <mutex>
#include <string>

#include "CStalls.h"

void *stalls_cxx_make(void) { return new std::mutex; }

void stalls_cxx_free(void *mutex) { delete static_cast<std::mutex *>(mutex); }

void stalls_cxx_lock(void *mutex) { static_cast<std::mutex *>(mutex)->lock(); }

void stalls_cxx_unlock(void *mutex) { static_cast<std::mutex *>(mutex)->unlock(); }

// C++ exceptions. libgcc unwinds them and asks the dynamic linker for the images.

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

bool stalls_throw_and_catch(void) {
  int cleanups = 0;
  try {
    throwBelow(kFrames, &cleanups);
  } catch (const std::string &text) {
    return text == "chaos" && cleanups == kFrames + 1;
  }
  return false;
}
