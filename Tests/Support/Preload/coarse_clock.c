// Preloaded into a program, lets its monotonic clock go on in steps of 40 ms, unlike the kernel's.

#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STEP_NANOSECONDS 40000000ll

int clock_gettime(clockid_t clock, struct timespec *time) {
  int status = (int)syscall(SYS_clock_gettime, clock, time);
  if (status != 0 || clock != CLOCK_MONOTONIC) return status;
  long long now = time->tv_sec * 1000000000ll + time->tv_nsec;
  now -= now % STEP_NANOSECONDS;
  *time = (struct timespec){.tv_sec = now / 1000000000ll, .tv_nsec = now % 1000000000ll};
  return 0;
}
