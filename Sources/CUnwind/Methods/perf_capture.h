// What captures by perf event keep.

#ifndef CUNWIND_PERF_CAPTURE_H
#define CUNWIND_PERF_CAPTURE_H

#include <linux/perf_event.h>
#include <stdbool.h>

#include "Methods/stop_helper.h"

typedef struct cunwind_perf_capture {
  struct perf_event_attr event;
  cunwind_helper_memory helper;  ///< The memory of the helper that opens events.
} cunwind_perf_capture;

#endif
