// A child of fork(2) that goes on without exec.

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"
#include "Support/bounded.h"

static int count_threads(void) {
  DIR *directory = opendir("/proc/self/task");
  if (!directory) return 0;
  int count = 0;
  for (struct dirent *entry; (entry = readdir(directory));) count += entry->d_name[0] != '.';
  closedir(directory);
  return count;
}

int cunwind_test_fork(void (*work)(void)) {
  pid_t child = fork();
  if (child < 0) return -errno;
  if (child == 0) {
    work();
    _exit(count_threads());
  }
  int status = 0;
  int error = cunwind_test_await_child(child, &status);
  if (error) return -error;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -ECHILD;
}
