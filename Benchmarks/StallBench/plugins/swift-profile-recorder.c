// The sampler of swift-profile-recorder as a plugin of the driver. It takes samples when asked and knows no stalls: a
// thread of the plugin reads when the turn began, as the watchdogs outside the process do, and asks for one sample of
// all threads when the turn is over the threshold. The file has its raw samples, and lines for the turns.
#define _GNU_SOURCE
#include <CSampler.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static FILE *output;
static unsigned threshold;
static pid_t loop;
/// When the turn began, in nanoseconds, 0 between turns; and the turn that was sampled.
static _Atomic(uint64_t) began, turns, sampled;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void *watch(void *context) {
  (void)context;
  struct timespec rest = {0, 5000000};
  for (;; nanosleep(&rest, NULL)) {
    uint64_t turn = turns, since = began;
    if (!since || turn == sampled || now() < since + threshold * 1000000ull) continue;
    sampled = turn;
    fprintf(output, "stall %.6f %d\n", (double)since / 1e9, loop);
    swipr_request_sample(output, 1, 0);
    fprintf(output, "sampled %.6f\n", (double)now() / 1e9);
    fflush(output);
  }
}

void plugin_start(unsigned milliseconds, const char *folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/samples.txt", folder);
  output = fopen(path, "ae");
  threshold = milliseconds;
  loop = gettid();
  pthread_t thread;
  if (!output || swipr_initialize() || pthread_create(&thread, NULL, watch, NULL)) abort();
  pthread_detach(thread);
}

void plugin_begin_turn(void) {
  turns++;
  began = now();
}

void plugin_end_turn(void) {
  uint64_t since = atomic_exchange(&began, 0);
  if (sampled == turns) {
    fprintf(output, "end %.6f\n", (double)(now() - since) / 1e9);
    fflush(output);
  }
}
