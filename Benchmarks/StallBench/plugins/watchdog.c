// A watchdog thread inside the process, as crash reporters have: it looks every 50 ms, and after the threshold it sends the
// loop's thread a signal whose handler unwinds; the watchdog then reports at once.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>

#include "plugin.h"

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
