#define _GNU_SOURCE
#include "Support/children.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int cunwind_test_open_children(pid_t thread) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)thread);
  return open(path, O_RDONLY | O_CLOEXEC);
}

pid_t cunwind_test_first_child(int children) {
  char text[256];
  ssize_t length = pread(children, text, sizeof text - 1, 0);
  text[length > 0 ? length : 0] = 0;
  return (pid_t)strtol(text, NULL, 10);
}
