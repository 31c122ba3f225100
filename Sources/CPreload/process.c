#define _GNU_SOURCE
#include "process.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "../CLinux/own_thread.h"

/// The size of a thread's stack, which may be too small by default: it loads the monitor and names functions.
#define STACK_BYTES (2 << 20)
/// The name of the product in Package.swift.
#define LIBRARY_NAME "libStallWatchPreload.so"

int cpreload_copy_variable(const char *name, char *to) {
  const char *value = getenv(name);
  if (!value || !*value || strlen(value) >= CPRELOAD_MAXIMUM_VALUE) return 0;
  strcpy(to, value);
  return 1;
}

static bool is_this_library(const char *path, size_t length) {
  const size_t size = sizeof LIBRARY_NAME - 1;
  if (length < size || memcmp(path + length - size, LIBRARY_NAME, size) != 0) return false;
  return length == size || path[length - size - 1] == '/';
}

void cpreload_leave_environment(void) {
  const char *preloaded = getenv("LD_PRELOAD");
  char *others = preloaded ? calloc(strlen(preloaded) + 2, 1) : NULL;
  if (!others) return;
  char *end = others;
  // The separators of ld.so(8). A script may have put other libraries before this one.
  for (const char *entry = preloaded; *entry;) {
    size_t length = strcspn(entry, ": ");
    if (length > 0 && !is_this_library(entry, length)) {
      if (end != others) *end++ = ':';
      memcpy(end, entry, length);
      end += length;
    }
    entry += length + (entry[length] != 0);
  }
  if (end != others) setenv("LD_PRELOAD", others, 1);
  else unsetenv("LD_PRELOAD");
  free(others);
}

bool cpreload_is_loaded(const char *name) {
  void *handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle) dlclose(handle);
  return handle != NULL;
}

bool cpreload_needs_main_thread(void) {
  return cpreload_is_loaded("libdispatch.so") && !cpreload_is_loaded("libFoundation.so");
}

static void *begin(void *body) {
  prctl(PR_SET_TIMERSLACK, TIMER_SLACK);
  return ((void *(*)(void *))body)(NULL);
}

int cpreload_start_thread(void *(*body)(void *)) {
  sigset_t before;
  block_app_signals(&before);
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_size(STACK_BYTES, thread_local_bytes()));
  int policy = sched_getscheduler(0);
  if (policy != SCHED_OTHER && policy != SCHED_IDLE) {
    // The program's computing threads would have to wait for it. The attributes have priority 0 and SCHED_OTHER. To leave
    // SCHED_IDLE may need a privilege (sched(7)).
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
  }
  int status = pthread_create(&thread, &attributes, begin, (void *)body);
  pthread_attr_destroy(&attributes);
  if (status == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return status;
}
