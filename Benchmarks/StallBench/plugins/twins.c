// Twins of three ways to watch a loop from within its process, as plugins of the driver. Each is written from a
// description; no project's code is used. They share the report file: a line names the moment of the report and the
// begin of the turn, on CLOCK_MONOTONIC, then comes the stack, innermost frame first, and at the end of the turn its
// length.
#define _GNU_SOURCE
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FRAMES = 64 };

static int output = -1;
static double threshold, turn_began;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void open_output(unsigned milliseconds, const char *folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/stalls.txt", folder);
  output = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  threshold = milliseconds / 1e3;
  // The first call loads the unwinder, which no handler may do.
  void *frames[4];
  backtrace(frames, 4);
}

static void write_line(const char *word, double first, double second) {
  char line[128];
  int length = snprintf(line, sizeof line, "%s %.6f %.6f\n", word, first, second);
  if (write(output, line, (size_t)length) < 0) output = -1;
}

#if defined(SEASTAR)
// A twin of Seastar's stall detector: a timer on the CPU clock of the loop's thread, whose signal unwinds in the
// handler and reports at once. A thread that blocks uses no CPU time.

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

#elif defined(GLOMMIO)
// A twin of glommio's stall detector: a timerfd and a thread that sends SIGUSR1 to the loop's thread; the handler
// unwinds, and the loop itself reports when the turn has ended.

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

#elif defined(WATCHDOG)
// A watchdog thread inside the process, as crash reporters have: it looks every 50 ms, and after the threshold it sends
// the loop's thread a signal whose handler unwinds; the watchdog then reports at once.

static pthread_t loop;
static void *frames[MOST_FRAMES];
static _Atomic(int) count;
static _Atomic(uint64_t) turns, began, reported;

static void on_signal(int signal) {
  (void)signal;
  count = backtrace(frames, MOST_FRAMES);
}

static void rest(long milliseconds) {
  struct timespec left = {0, milliseconds * 1000000};
  nanosleep(&left, NULL);
}

static void *watch(void *context) {
  (void)context;
  for (;; rest(50)) {
    uint64_t turn = turns, since = began;
    if (!since || turn == reported || now() - (double)since / 1e9 < threshold) continue;
    count = 0;
    pthread_kill(loop, SIGUSR2);
    for (int tries = 0; !count && tries < 100; tries++) rest(1);
    write_line("stall", now(), (double)since / 1e9);
    if (count) backtrace_symbols_fd(frames, count, output);
    reported = turn;
  }
}

void plugin_start(unsigned milliseconds, const char *folder) {
  open_output(milliseconds, folder);
  loop = pthread_self();
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigaction(SIGUSR2, &action, NULL);
  pthread_t thread;
  pthread_create(&thread, NULL, watch, NULL);
  pthread_detach(thread);
}

void plugin_begin_turn(void) {
  turn_began = now();
  turns++;
  began = (uint64_t)(turn_began * 1e9);
}

void plugin_end_turn(void) {
  began = 0;
  if (reported == turns) write_line("end", now(), now() - turn_began);
}

#endif
