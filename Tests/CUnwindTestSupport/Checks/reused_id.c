// A watched thread ends, and another process gets its id.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Support/checks.h"

// clone3(2) lets a process with CAP_CHECKPOINT_RESTORE choose a child's id. Returns like fork(2).
static pid_t fork_with_id(pid_t id) {
  struct clone_args arguments;
  memset(&arguments, 0, sizeof arguments);
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = (uint64_t)(uintptr_t)&id;
  arguments.set_tid_size = 1;
  return (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
}

void cunwind_check_reused_id(int unused) {
  (void)unused;
  // The caller's own id is in use; the kernel checks that after the privilege.
  if (fork_with_id(getpid()) >= 0 || errno != EEXIST) {
    cunwind_test_say("not run: it needs CAP_CHECKPOINT_RESTORE");
    return;
  }
  cunwind_test_subject subject;
  if (!cunwind_test_subject_start(&subject, CUNWIND_TEST_SPINNING, 3, SIGPROF)) return;
  cunwind_test_thread_stop(subject.state);
  subject.state = NULL;
  // pthread_join(3) returns when the kernel clears the thread's id, a moment before it is free.
  pid_t child = -1;
  for (int tries = 0; tries < 10000 && child < 0; tries++) {
    child = fork_with_id(subject.tid);
    if (child == 0) {
      alarm(20);  // Ends the child in any case.
      for (;;) pause();
    }
    if (child < 0) usleep(1000);
  }
  if (EXPECT(child > 0)) {
    EXPECT(cunwind_test_capture(&subject, cunwind_capture_stop) == CUNWIND_NO_SUCH_THREAD);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
  }
  cunwind_test_subject_stop(&subject);
}
