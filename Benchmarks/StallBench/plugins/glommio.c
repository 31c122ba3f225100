// A twin of glommio's stall detector: a timerfd and a thread that sends SIGUSR1 to the loop's thread; the handler unwinds, and
// the loop itself reports when the turn has ended. Written from its description; glommio's code is not used.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/timerfd.h>

#include "plugin.h"

static pthread_t loop;
static int timer = -1;
static void *frames[MOST_FRAMES];
static _Atomic(int) count;

static void on_signal(int signal) {
  (void)signal;
  if (pthread_equal(pthread_self(), loop) && !count) count = backtrace(frames, MOST_FRAMES);
}

static void *wait_for_timer(void *context) {
  (void)context;
  uint64_t times;
  while (read(timer, &times, sizeof times) == sizeof times) pthread_kill(loop, SIGUSR1);
  return NULL;
}

static void arm(double seconds) {
  struct itimerspec time = {{0, 0}, {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)}};
  timerfd_settime(timer, 0, &time, NULL);
}

void plugin_start(unsigned milliseconds, const char *folder) {
  // 10 % over the time that a turn may take: glommio's default.
  open_output(milliseconds, folder);
  loop = pthread_self();
  timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  pthread_t thread;
  pthread_create(&thread, NULL, wait_for_timer, NULL);
  pthread_detach(thread);
}

void plugin_begin_turn(void) {
  turn_began = now();
  arm(threshold * 1.1);
}

void plugin_end_turn(void) {
  arm(0);
  if (!count) return;
  double end = now();
  write_line("stall", end, turn_began);
  backtrace_symbols_fd(frames, count, output);
  write_line("end", end, end - turn_began);
  count = 0;
}
