// A helper that its parent never names as tracer, because the parent was stopped or killed just before.

#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "CUnwindTestSupport.h"
#include "Methods/stop_helper.h"

static uint64_t nanoseconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

uint64_t cunwind_test_unnamed_helper(int *status) {
  cunwind_stop_request request;
  memset(&request, 0, sizeof request);
  uint64_t begin = nanoseconds_now();
  cunwind_stop_helper(&request);
  *status = request.status;
  return nanoseconds_now() - begin;
}
