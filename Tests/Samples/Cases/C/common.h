#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static inline uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}
static volatile uint64_t sink;
#define NOINLINE __attribute__((noinline, noclone))
// Not a call: the loop is in the caller, apart from clock_gettime.
#define SPIN(ms)                                         \
  do {                                                   \
    uint64_t end_ = now_ns() + (ms)*1000000ull;          \
    while (now_ns() < end_)                              \
      for (int i_ = 0; i_ < 20000; i_++) sink += i_ * 7; \
  } while (0)
static inline void nap(int ms) {
  struct timespec t = {ms / 1000, (ms % 1000) * 1000000L};
  while (nanosleep(&t, &t) && errno == EINTR) {
  }
}
