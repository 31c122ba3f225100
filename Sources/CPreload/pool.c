// Narrows the pool of Swift's tasks, as on a machine with fewer processors.

#define _GNU_SOURCE
#include "pool.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "CPreload.h"

struct dispatch_queue_s;
typedef void set_width_function(struct dispatch_queue_s *queue, long width);
typedef const char *get_label_function(struct dispatch_queue_s *queue);

/// What the Swift runtime asks for: the number of logical processors (DISPATCH_QUEUE_WIDTH_MAX_LOGICAL_CPUS).
#define LOGICAL_PROCESSORS (-3)
#define POOL_LABEL "Swift global concurrent queue"

/// 0 leaves the pool as it is.
static long pool_width;

bool cpreload_narrow_pool(void) {
  const char *value = getenv(CPRELOAD_POOL);
  long width = value ? strtol(value, NULL, 10) : 0;
  if (width < 1 || width > CPRELOAD_MAXIMUM_POOL) return true;
  // A runtime that is linked into the executable calls its own libdispatch. The linker has loaded the others by now.
  if (!dlopen("libswift_Concurrency.so", RTLD_LAZY | RTLD_NOLOAD)) return false;
  pool_width = width;
  return true;
}

/// Returns libdispatch's function: behind this library, or in a libdispatch that was loaded for its opener only.
static void *real(const char *name) {
  void *function = dlsym(RTLD_NEXT, name);
  void *dispatch = function ? NULL : dlopen("libdispatch.so", RTLD_LAZY | RTLD_NOLOAD);
  return dispatch ? dlsym(dispatch, name) : function;
}

void dispatch_queue_set_width(struct dispatch_queue_s *queue, long width);

/// Stands in for libdispatch's function, with which the Swift runtime makes the queue of each priority of its pool
/// (DispatchGlobalExecutor.cpp), before the first task of that priority.
void dispatch_queue_set_width(struct dispatch_queue_s *queue, long width) {
  set_width_function *set_width = (set_width_function *)real("dispatch_queue_set_width");
  get_label_function *label = (get_label_function *)real("dispatch_queue_get_label");
  if (pool_width > 0 && width == LOGICAL_PROCESSORS && label && strcmp(label(queue), POOL_LABEL) == 0)
    width = pool_width;
  if (set_width) set_width(queue, width);
}
