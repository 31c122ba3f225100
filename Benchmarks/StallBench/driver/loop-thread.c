// A loop that the program has written itself, on a thread of its own; the main thread only waits for it.
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "bench.h"

__attribute__((noinline)) static void wait_for_events(int milliseconds) {
  double until = bench_now() + milliseconds / 1e3;
  bench_turn_end();
  // The loop's own wait: cut short or not, it goes on until the next event is due.
  for (double left; (left = until - bench_now()) > 0;) poll(NULL, 0, (int)(left * 1e3) + 1);
  bench_turn_begin();
}

void bench_run_nested(unsigned milliseconds) {
  double until = bench_now() + milliseconds / 1e3;
  while (bench_now() < until) wait_for_events(20);
}

__attribute__((noinline)) static void run_turns(void) {
  int pause = 400;
  while (pause >= 0) {
    wait_for_events(pause);
    pause = bench_step();
  }
  bench_turn_end();
}

static void *run(void *set) {
  bench_start(set);
  run_turns();
  return NULL;
}

void bench_run_loop(const char *set) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, (void *)set)) exit(1);
  pthread_setname_np(thread, "loop");
  pthread_join(thread, NULL);
}
