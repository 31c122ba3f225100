// A helper that ends only after its capture has timed out, or never.

#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"
#include "Engine/engine.h"
#include "System/raw_system_call.h"

int cunwind_test_overdue_helper(void) {
  cunwind_engine *engine = cunwind_test_engine(27);
  if (!engine) return -errno;
  pid_t child = fork();
  if (child < 0) return -errno;
  if (child == 0) {
    for (;;) pause();
  }
  engine->helper.unreaped = child;
  engine->helper.request->alive = (uint32_t)child;
  engine->helper.left_until = cunwind_now() + 20000000;
  bool was_left = !cunwind_helper_has_ended(&engine->helper, 0);
  usleep(30000);
  bool has_ended = cunwind_helper_has_ended(&engine->helper, 1000000000);
  if (!has_ended) kill(child, SIGKILL);
  cunwind_engine_destroy(engine);
  return was_left ? !has_ended : -ECHILD;
}

int cunwind_test_late_helper(bool refreshes) {
  cunwind_engine *engine = cunwind_test_engine(27);
  if (!engine) return -errno;
  pid_t child = fork();
  if (child < 0) return -errno;
  if (child == 0) {
    usleep(10000);
    _exit(0);
  }
  engine->helper.unreaped = child;
  if (refreshes) {
    siginfo_t ended;
    // WNOWAIT: this does not reap the child.
    waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT);
    cunwind_engine_refresh_images(engine);
  } else {
    cunwind_engine_destroy(engine);
  }
  int left = waitpid(child, NULL, 0) == child;
  if (refreshes) cunwind_engine_destroy(engine);
  return left;
}
