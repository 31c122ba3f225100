// libdebuginfod's client, loaded when it is first asked for.
//
// Its functions are declared here and not included: its headers are in a package of their own, and the interface has
// three functions that have not changed since elfutils 0.178.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>

#include "image.h"

typedef struct debuginfod_client debuginfod_client;
typedef int progress_function(debuginfod_client *client, long done, long total);

static struct {
  debuginfod_client *(*begin)(void);
  void (*end)(debuginfod_client *client);
  void (*set_progress)(debuginfod_client *client, progress_function *function);
  int (*find)(debuginfod_client *client, const unsigned char *build_id, int length, char **path);
  bool is_loaded;
} library;

/// The longest that libdebuginfod waits before it calls its progress function again (curl_multi_wait, 1000 ms).
#define LONGEST_WAIT_NANOSECONDS 1000000000u

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local uint64_t current_deadline;

static void load(void) {
  if (!csymbols_has_dynamic_loader()) return;
  void *handle = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!handle) return;
  library.begin = (__typeof__(library.begin))dlsym(handle, "debuginfod_begin");
  library.end = (__typeof__(library.end))dlsym(handle, "debuginfod_end");
  library.set_progress = (__typeof__(library.set_progress))dlsym(handle, "debuginfod_set_progressfn");
  library.find = (__typeof__(library.find))dlsym(handle, "debuginfod_find_debuginfo");
  library.is_loaded = library.begin && library.end && library.set_progress && library.find;
}

// Whether one more wait could go past the deadline.
static bool is_near(uint64_t deadline) {
  return deadline < LONGEST_WAIT_NANOSECONDS || csymbols_now() >= deadline - LONGEST_WAIT_NANOSECONDS;
}

// Called between the waits, on the thread that asked. Anything but 0 ends the query.
static int progress(debuginfod_client *client, long done, long total) {
  (void)client, (void)done, (void)total;
  return is_near(current_deadline);
}

int csymbols_debuginfod_open(const uint8_t *build_id, size_t build_id_length, uint64_t deadline) {
  if (is_near(deadline)) return -ETIME;
  pthread_once(&once, load);
  // A length of 0 would mean a string.
  if (!library.is_loaded || build_id_length == 0 || build_id_length > INT_MAX) return -ENOSYS;
  debuginfod_client *client = library.begin();
  if (!client) return -ENOMEM;
  current_deadline = deadline;
  library.set_progress(client, progress);
  int descriptor = library.find(client, build_id, (int)build_id_length, NULL);
  library.end(client);
  return descriptor < 0 && is_near(deadline) ? -ETIME : descriptor;
}
