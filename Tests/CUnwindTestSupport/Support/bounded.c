#define _GNU_SOURCE
#include "Support/bounded.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS = 30, TRIES_A_SECOND = 1000 };

uint64_t cunwind_test_milliseconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool cunwind_test_join(pthread_t thread) {
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += SECONDS;
  return pthread_timedjoin_np(thread, NULL, &limit) == 0;
}

int cunwind_test_await_child(pid_t child, int *status) {
  for (int tries = 0; tries < SECONDS * TRIES_A_SECOND; tries++) {
    pid_t ended = waitpid(child, status, WNOHANG);
    if (ended == child) return 0;
    if (ended < 0 && errno != EINTR) return errno;
    usleep(1000000 / TRIES_A_SECOND);
  }
  kill(child, SIGKILL);
  waitpid(child, status, 0);
  return ETIMEDOUT;
}

bool cunwind_test_awaits_helper(cunwind_status status, const cunwind_capture_info *info) {
  if (status != CUNWIND_FAILED || info->error != EBUSY) return false;
  usleep(1000);
  return true;
}
