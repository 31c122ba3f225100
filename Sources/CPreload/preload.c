// Offers dumps of a test process that hangs.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "CPreload.h"
#include "pool.h"
#include "process.h"

typedef int dump_function(uint64_t milliseconds, const char *directory, char *answer, long size);

/// The values of the variables.
static char library[PATH_MAX], requests[PATH_MAX];

/// Whether this is a process that runs tests: the bundle that the package manager builds, or its helper.
static int runs_tests(void) {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  const char *slash = strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  size_t size = strlen(name);
  return (size > 7 && !strcmp(name + size - 7, ".xctest")) || !strcmp(name, "swiftpm-testing-helper");
}

/// NULL until the monitor is loaded.
static dump_function *dump;

/// Loads the monitor. RTLD_DEEPBIND: if the tests link StallWatch themselves, each copy keeps to its own functions.
static void load(char *reason, size_t size) {
  if (gettid() != getpid() && cpreload_needs_main_thread()) {
    snprintf(reason, size, "it has loaded libdispatch, without Foundation, after its start");
    return;
  }
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  dump = handle ? (dump_function *)dlsym(handle, "stallwatch_dump_hang") : NULL;
  if (!dump) {
    const char *error = dlerror();
    snprintf(reason, size, "%s", error ? error : "the library has no function stallwatch_dump_hang");
  }
}

/// Writes the answer under another name first, so that no reader sees a part of it.
static void answer(int status, const char *text) {
  char part[PATH_MAX], path[PATH_MAX];
  snprintf(path, sizeof path, "%.*s/answer.%d", PATH_MAX - 32, requests, getpid());
  snprintf(part, sizeof part, "%.*s/part.%d", PATH_MAX - 32, requests, getpid());
  FILE *file = fopen(part, "we");
  if (!file) return;
  fprintf(file, "%d %s\n", status, text);
  if (fclose(file) == 0) rename(part, path);
}

static void *serve(void *context) {
  (void)context;
  pthread_setname_np(pthread_self(), "stallwatch-ask");
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%.*s/ask.%d", PATH_MAX - 32, requests, getpid());
  // Open for writing, too: otherwise each request would end with an end of file.
  int fifo = mkfifo(path, 0600) == 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
  struct stat opened = {0}, now;
  if (fifo < 0 || fstat(fifo, &opened) != 0) return NULL;
  for (;;) {
    // A program that closes all descriptors gives the number to a file of its own.
    if (fstat(fifo, &now) != 0 || now.st_dev != opened.st_dev || now.st_ino != opened.st_ino) {
      fifo = open(path, O_RDWR | O_CLOEXEC);
      if (fifo < 0 || fstat(fifo, &opened) != 0) return NULL;
    }
    char request[PATH_MAX + 32], text[PATH_MAX + 32], *directory;
    ssize_t count = read(fifo, request, sizeof request - 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return NULL;
    request[count] = 0;
    request[strcspn(request, "\n")] = 0;
    uint64_t milliseconds = strtoull(request, &directory, 10);
    if (!dump) load(text, sizeof text);
    int status = dump ? dump(milliseconds, directory + (*directory == ' '), text, sizeof text) : 1;
    answer(status, text);
  }
}

__attribute__((constructor)) static void offer_dumps(void) {
  if (!getenv(CPRELOAD_LIBRARY)) return;
  // The run's output goes through a pipe, for which libc keeps 4 KiB back: the names of the tests that have begun.
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (!cpreload_copy_variable(CPRELOAD_LIBRARY, library) || !cpreload_copy_variable(CPRELOAD_REQUESTS, requests))
    return;
  if (!runs_tests()) return;
  // The programs that the tests start are not the tests.
  cpreload_leave_environment();
  if (!cpreload_narrow_pool()) {
    fprintf(stderr,
            "stallwatch: %s: the task pool keeps its width, because the Swift runtime is linked into the "
            "executable: build the tests without --static-swift-stdlib\n",
            program_invocation_short_name);
  }
  unsetenv(CPRELOAD_POOL);
  char reason[256];
  if (cpreload_needs_main_thread()) load(reason, sizeof reason);
  cpreload_start_thread(serve);
}
