// The tracer of a thread: a debugger, or the helper of another capture.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "Engine/engine.h"
#include "System/raw_system_call.h"

// The fields of proc_pid_stat(5), counted from 1.
#define PARENT_FIELD 4
#define EXIT_SIGNAL_FIELD 38

// Reads the beginning of a file of /proc as a string. Returns false if it cannot be read.
static bool read_text(const char *path, char *text, size_t size) {
  long file = cunwind_raw(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
  if (file < 0) return false;
  long got = cunwind_raw(SYS_read, file, (long)text, (long)size - 1, 0, 0, 0);
  cunwind_raw(SYS_close, file, 0, 0, 0, 0, 0);
  text[got > 0 ? got : 0] = 0;
  return got > 0;
}

pid_t cunwind_tracer(pid_t tid) {
  char path[64], text[2048];
  snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)tid);
  if (!read_text(path, text, sizeof text)) return 0;
  const char *line = strstr(text, "\nTracerPid:");
  return line ? (pid_t)strtol(line + strlen("\nTracerPid:"), NULL, 10) : 0;
}

bool cunwind_is_stop_helper(pid_t pid) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  if (pid <= 0 || !read_text(path, text, sizeof text)) return false;
  // The name before the last ')' may contain blanks. The state, field 3, follows it.
  char *at = strrchr(text, ')');
  if (!at) return false;
  long parent = -1, exit_signal = -1;
  char *rest = NULL;
  int field = 2;
  for (char *word = strtok_r(at + 1, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    field++;
    if (field == PARENT_FIELD) parent = strtol(word, NULL, 10);
    if (field == EXIT_SIGNAL_FIELD) exit_signal = strtol(word, NULL, 10);
  }
  return parent == getpid() && exit_signal == 0;
}
