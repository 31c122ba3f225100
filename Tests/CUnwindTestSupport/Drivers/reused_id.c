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

#include "CUnwindTestSupport.h"

// clone3(2) lets a process with CAP_CHECKPOINT_RESTORE choose a child's id. Returns like fork(2).
static pid_t fork_with_id(pid_t id) {
  struct clone_args arguments;
  memset(&arguments, 0, sizeof arguments);
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = (uint64_t)(uintptr_t)&id;
  arguments.set_tid_size = 1;
  return (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
}

bool cunwind_test_may_choose_ids(void) {
  // The caller's own id is in use; the kernel checks that after the privilege.
  return fork_with_id(getpid()) < 0 && errno == EEXIST;
}

int cunwind_test_stop_reused_id(void) {
  static cunwind_stack stack;
  cunwind_capture_info info;
  int status = -1;
  cunwind_engine *engine = cunwind_test_engine(SIGPROF);
  cunwind_test_thread *thread_state = engine ? cunwind_test_thread_start(CUNWIND_TEST_SPINNING, 3) : NULL;
  if (!thread_state) return status;
  pid_t id = cunwind_test_thread_tid(thread_state);
  cunwind_thread *thread = cunwind_thread_open(id, CUNWIND_ALL_THREAD_FILES, NULL);
  cunwind_test_thread_stop(thread_state);
  // pthread_join(3) returns when the kernel clears the thread's id, a moment before it is free.
  pid_t child = -1;
  for (int tries = 0; tries < 100 && child < 0; tries++) {
    child = fork_with_id(id);
    if (child == 0) {
      alarm(20);  // Ends the child in any case.
      for (;;) pause();
    }
    if (child < 0) usleep(1000);
  }
  if (child > 0 && thread) status = cunwind_capture_stop(engine, thread, &stack, &info);
  if (child > 0) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
  }
  cunwind_thread_close(thread);
  cunwind_engine_destroy(engine);
  return status;
}
