#define _GNU_SOURCE
#include <errno.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"

// Fails only without Yama, where no permission is needed.
void cunwind_test_allow_tracing(void) { (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); }

// A stopped thread continues when it is detached (ptrace(2)).
bool cunwind_test_hold(pid_t tid, uint32_t milliseconds) {
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
  if (is_stopped) usleep(milliseconds * 1000);
  // If it did not stop, the end of the tracer detaches it.
  return is_stopped && ptrace(PTRACE_DETACH, tid, NULL, NULL) == 0;
}
