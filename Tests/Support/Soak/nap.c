// A library on a file system that hangs: its code, its symbols and its debug information are behind it.

#include <time.h>

static volatile unsigned naps;

__attribute__((noinline)) static void nap_inside(int milliseconds) {
  struct timespec time = {milliseconds / 1000, (milliseconds % 1000) * 1000000L};
  nanosleep(&time, 0);
  naps++;
}

__attribute__((visibility("default"))) void nap_in_library(int milliseconds) {
  nap_inside(milliseconds);
  naps++;
}
