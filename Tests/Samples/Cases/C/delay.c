// LD_PRELOAD: the thread stallwatch-dog loses its CPU for DELAY_MS before each Nth read of CLOCK_BOOTTIME, as a busy machine may do at any instruction
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *t) {
  static int (*real)(clockid_t, struct timespec *);
  static int count, every, ms;
  if (!real) {
    real = dlsym(RTLD_NEXT, "clock_gettime");
    every = atoi(getenv("DELAY_EVERY") ?: "0");
    ms = atoi(getenv("DELAY_MS") ?: "60");
  }
  if (clock == CLOCK_BOOTTIME && every) {
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    if (!strcmp(name, "stallwatch-dog") && ++count % every == 0) {
      struct timespec d = {0, ms * 1000000L};
      syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &d, 0);
    }
  }
  return real(clock, t);
}
