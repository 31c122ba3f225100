// A signal that the app uses itself, and as reference for the captures, one that another monitor sends.

#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "Support/checks.h"

/// The signals that the app sends, and the captures among them.
enum { ROUNDS = 200 };

static uint64_t arrived;

static void count(int number) {
  (void)number;
  __atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
}

static uint64_t arrived_now(void) { return __atomic_load_n(&arrived, __ATOMIC_RELAXED); }

void cunwind_check_shared_signal(int unused) {
  (void)unused;
  const int number = SIGRTMIN + 9;
  uint64_t sent = 0, captures = 0, late = 0;
  struct sigaction app = {.sa_handler = count, .sa_flags = SA_RESTART}, before, after;
  sigaction(number, &app, &before);
  arrived = 0;
  cunwind_test_subject subject;
  if (!cunwind_test_subject_start(&subject, CUNWIND_TEST_SPINNING, 3, number)) return;
  for (int round = 0; round < ROUNDS; round++) {
    sent += tgkill(getpid(), subject.tid, number) == 0;
    cunwind_status status = cunwind_test_capture(&subject, cunwind_capture_signal);
    captures += status == CUNWIND_OK;
    // The app's own signal is blocked while its handler runs.
    late += status == CUNWIND_TIMED_OUT || status == CUNWIND_SIGNAL_BLOCKED;
  }
  // Real-time signals queue up, so each of them arrives; 10 s at most.
  for (int tries = 0; tries < 1000 && arrived_now() < sent; tries++) usleep(10000);
  cunwind_test_subject_stop(&subject);
  sigaction(number, &before, &after);
  cunwind_test_say("%llu captures, %llu of %llu arrived", COUNT(captures), COUNT(arrived_now()), COUNT(sent));
  // A handler may come after the time limit; its signal still has to arrive.
  EXPECT(captures + late == ROUNDS && captures >= ROUNDS / 2);
  EXPECT(sent == ROUNDS && arrived_now() == sent);
  EXPECT(after.sa_handler == count && (after.sa_flags & SA_RESTART));
}

// The handler that takes the place of the app's must not restart what the app's interrupts on purpose.
void cunwind_check_kept_restart(int unused) {
  (void)unused;
  const struct {
    void (*handler)(int);
    int flags;
    bool restarts;
  } actions[] = {{count, 0, false}, {count, SA_RESTART, true}, {SIG_IGN, 0, true}, {SIG_DFL, 0, true}};
  for (int index = 0; index < 4; index++) {
    const int number = SIGRTMIN + 10 + index;
    struct sigaction app = {.sa_handler = actions[index].handler, .sa_flags = actions[index].flags}, before, now;
    sigaction(number, &app, &before);
    cunwind_test_subject subject;
    if (!cunwind_test_subject_start(&subject, CUNWIND_TEST_SPINNING, 3, number)) return;
    cunwind_test_capture(&subject, cunwind_capture_signal);
    EXPECT(sigaction(number, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO));
    EXPECT(((now.sa_flags & SA_RESTART) != 0) == actions[index].restarts);
    cunwind_test_subject_stop(&subject);
    sigaction(number, &before, NULL);
  }
}

static void do_nothing(int number) { (void)number; }

// Without it a check that finds no interrupted call would say nothing.
void cunwind_check_plain_signal(int unused) {
  (void)unused;
  const int number = SIGRTMIN + 7;
  uint32_t interrupted = 0;
  struct sigaction action = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
  EXPECT(sigaction(number, &action, NULL) == 0);
  for (size_t index = 0; index < cunwind_test_call_count(); index++) {
    cunwind_test_call call = cunwind_test_call_at(index);
    cunwind_test_blocker *blocker = call.is_timed ? cunwind_test_blocker_start(index, 12) : NULL;
    for (int sent = 0; blocker && sent < 10; sent++) {
      usleep(3000);
      EXPECT(tgkill(getpid(), cunwind_test_blocker_tid(blocker), number) == 0);
    }
    if (!blocker) continue;
    cunwind_test_blocker_result result = cunwind_test_blocker_stop(blocker);
    bool is_interrupted = result.interrupted + result.early > 0;
    if (is_interrupted) cunwind_test_say("%s ", call.name);
    interrupted += is_interrupted;
  }
  EXPECT(interrupted >= 8);
}
