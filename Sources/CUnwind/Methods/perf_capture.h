// What captures by perf event keep.

#ifndef CUNWIND_PERF_CAPTURE_H
#define CUNWIND_PERF_CAPTURE_H

#include <linux/perf_event.h>
#include <stdbool.h>

#include "Methods/stop_helper.h"

typedef struct cunwind_perf_capture {
  struct perf_event_attr event;
  cunwind_helper_memory helper;  ///< The memory of the helper that opens events.
  bool is_checked;               ///< The next field is valid.
  bool is_forbidden;             ///< A seccomp filter kills the caller of perf_event_open(2).
} cunwind_perf_capture;

#endif
