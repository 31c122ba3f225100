// A helper that ends only after its capture has timed out, or never; and one that its parent never names as tracer.

#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Engine/engine.h"
#include "Methods/stop_helper.h"
#include "Support/checks.h"
#include "System/raw_system_call.h"

/// A bound on waits without an end: a thread or child gets a CPU sooner.
#define LONGEST_NANOSECONDS 30000000000ull

// The parent was stopped or killed just before.
void cunwind_check_unnamed_helper(int unused) {
  (void)unused;
  cunwind_stop_request request = {0};
  uint64_t begin = cunwind_now();
  cunwind_stop_helper(&request);
  uint64_t took = cunwind_now() - begin;
  cunwind_test_say("status %d after %llu ms", request.status, COUNT(took / 1000000));
  EXPECT(request.status == CUNWIND_TIMED_OUT);
  EXPECT(took >= CUNWIND_STOP_TIMEOUT_NANOSECONDS && took < LONGEST_NANOSECONDS);
}

// Like a helper that the watchdog detached from and that was then stopped.
void cunwind_check_overdue_helper(int unused) {
  (void)unused;
  cunwind_engine *engine = cunwind_test_engine(27);
  pid_t child = engine ? fork() : -1;
  if (!EXPECT(child >= 0)) return;
  if (child == 0) {
    for (;;) pause();
  }
  engine->helper.unreaped = child;
  engine->helper.request->alive = (uint32_t)child;
  engine->helper.left_until = UINT64_MAX;
  EXPECT(!cunwind_helper_has_ended(&engine->helper, 0));
  engine->helper.left_until = cunwind_now();
  if (!EXPECT(cunwind_helper_has_ended(&engine->helper, LONGEST_NANOSECONDS))) kill(child, SIGKILL);
  cunwind_engine_destroy(engine);
}

// Like a helper that gets no CPU. The app does not wait for this child, so without the engine it would stay a zombie.
void cunwind_check_late_helper(int refreshes) {
  cunwind_engine *engine = cunwind_test_engine(27);
  pid_t child = engine ? fork() : -1;
  if (!EXPECT(child >= 0)) return;
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
  EXPECT(waitpid(child, NULL, 0) < 0);
  if (refreshes) cunwind_engine_destroy(engine);
}
