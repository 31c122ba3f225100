// A child of fork(2) that goes on without exec, and a process that traces another one.

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
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

#define NO_NAMESPACE 2

// The caller is a child for this. Its own children are the first ones of a namespace each.
static int enter_namespaces(bool is_twin, void (*first)(void), bool (*second)(void)) {
  // Without a user namespace it needs a privilege.
  if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return NO_NAMESPACE;
  pid_t child = fork();
  if (child < 0) return NO_NAMESPACE;
  if (child > 0) {
    int status = 0;
    int error = cunwind_test_await_child(child, &status);
    return error == 0 && WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
  }
  if (getpid() != 1) _exit(ECHILD);
  if (is_twin) _exit(second() ? 1 : 0);
  first();
  _exit(enter_namespaces(true, first, second));
}

int cunwind_test_fork_twin(void (*first)(void), bool (*second)(void)) {
  pid_t child = fork();
  if (child < 0) return -errno;
  if (child == 0) _exit(enter_namespaces(false, first, second));
  int status = 0;
  int error = cunwind_test_await_child(child, &status);
  if (error) return -error;
  return WIFEXITED(status) && WEXITSTATUS(status) <= NO_NAMESPACE ? WEXITSTATUS(status) : -ECHILD;
}

// Fails only without Yama, where no permission is needed.
void cunwind_test_allow_tracing(void) { (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); }

// A stopped thread continues when it is detached (ptrace(2)).
bool cunwind_test_hold(pid_t tid, uint32_t milliseconds, int end) {
  if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0) return false;
  bool is_stopped = false;
  if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0) {
    // 10 s at most.
    for (int tries = 0; tries < 1000 && !is_stopped; tries++) {
      int status = 0;
      is_stopped = waitpid(tid, &status, __WALL | WNOHANG) == tid && WIFSTOPPED(status);
      if (!is_stopped) usleep(10000);
    }
  }
  if (is_stopped) poll(&(struct pollfd){.fd = end, .events = POLLIN}, 1, (int)milliseconds);
  // If it did not stop, the end of the tracer detaches it.
  return is_stopped && ptrace(PTRACE_DETACH, tid, NULL, NULL) == 0;
}
