// A twin of Seastar's stall detector: a timer on the CPU clock of the loop's thread, whose signal unwinds in the handler and
// reports at once. Written from its description; Seastar's code is not used. A thread that blocks uses no CPU time.
#define _GNU_SOURCE
#include <signal.h>

#include "plugin.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static timer_t timer;
static bool is_reported;

static void on_timer(int signal) {
  (void)signal;
  void *frames[MOST_FRAMES];
  if (is_reported) return;
  is_reported = true;
  write_line("stall", now(), turn_began);
  backtrace_symbols_fd(frames, backtrace(frames, MOST_FRAMES), output);
}

void plugin_start(unsigned milliseconds, const char *folder) {
  open_output(milliseconds, folder);
  struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
  sigaction(SIGRTMIN + 1, &action, NULL);
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 1};
  event.sigev_notify_thread_id = gettid();
  timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer);
}

static void arm(double seconds) {
  struct itimerspec time = {{0, 0}, {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)}};
  timer_settime(timer, 0, &time, NULL);
}

void plugin_begin_turn(void) {
  turn_began = now();
  is_reported = false;
  arm(threshold);
}

void plugin_end_turn(void) {
  arm(0);
  if (is_reported) write_line("end", now(), now() - turn_began);
}
