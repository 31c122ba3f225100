// Preloaded into a program, hides what the system shows of it, as sandboxes do. MISSING_FILES: opening these files of a
// thread or of the process under /proc, names with commas, fails with ENOENT. NOT_DUMPABLE: the process is not dumpable
// (prctl(2)), as a program with capabilities of its own.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_missing(const char *name) {
  const char *list = getenv("MISSING_FILES");
  size_t length = strlen(name);
  for (; list && *list; list += strcspn(list, ","), list += *list == ',') {
    if (strcspn(list, ",") == length && strncmp(list, name, length) == 0) return true;
  }
  return false;
}

static bool is_of_thread_or_process(const char *path) {
  return strncmp(path, "/proc/self/", 11) == 0 || strncmp(path, "/proc/thread-self/", 18) == 0 ||
         (strncmp(path, "/proc/", 6) == 0 && strstr(path, "/task/"));
}

static int open_shown(int directory, const char *path, int flags, unsigned mode) {
  const char *slash = is_of_thread_or_process(path) ? strrchr(path, '/') : NULL;
  if (slash && is_missing(slash + 1)) {
    errno = ENOENT;
    return -1;
  }
  return (int)syscall(SYS_openat, directory, path, flags, mode);
}

// The caller's last argument; 0 without O_CREAT, as then there is none (open(2)).
#define MODE(flags)                               \
  unsigned mode = 0;                              \
  if (((flags) & (O_CREAT | __O_TMPFILE)) != 0) { \
    va_list arguments;                            \
    va_start(arguments, flags);                   \
    mode = va_arg(arguments, unsigned);           \
    va_end(arguments);                            \
  }

int open(const char *path, int flags, ...) {
  MODE(flags)
  return open_shown(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  MODE(flags)
  return open_shown(AT_FDCWD, path, flags, mode);
}

int openat(int directory, const char *path, int flags, ...) {
  MODE(flags)
  return open_shown(directory, path, flags, mode);
}

int openat64(int directory, const char *path, int flags, ...) {
  MODE(flags)
  return open_shown(directory, path, flags, mode);
}

__attribute__((constructor)) static void hide_what_is_asked(void) {
  if (getenv("NOT_DUMPABLE") && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
    perror("prctl");
    _exit(125);
  }
}
