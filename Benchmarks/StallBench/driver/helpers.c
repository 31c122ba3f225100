// The threads that the cases wait for.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"

/// Waits on the other threads of the driver, where nothing is counted.
static void pass(unsigned milliseconds) {
  struct timespec left = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
  while (nanosleep(&left, &left)) continue;
}

__attribute__((noinline)) static void keep_it(const struct bench_holder *holder) {
  double until = bench_now() + holder->milliseconds / 1e3;
  if (holder->spins) {
    while (bench_now() < until) continue;
  } else {
    pass(holder->milliseconds);
  }
}

static void *run_holder(void *argument) {
  struct bench_holder *holder = argument;
  pthread_setname_np(pthread_self(), holder->name);
  holder->hold(holder->lock);
  int thread = gettid();
  if (write(holder->ready[1], &thread, sizeof thread) < 0) abort();
  keep_it(holder);
  holder->release(holder->lock);
  close(holder->ready[0]);
  close(holder->ready[1]);
  free(holder);
  return NULL;
}

void bench_hold(struct bench_holder holder, bool has_owner) {
  struct bench_holder *kept = malloc(sizeof *kept);
  if (!kept || pipe(holder.ready)) abort();
  *kept = holder;
  pthread_t thread;
  if (pthread_create(&thread, NULL, run_holder, kept)) abort();
  pthread_detach(thread);
  int owner = 0;
  while (read(holder.ready[0], &owner, sizeof owner) < 0) continue;
  if (has_owner) bench_owner(owner, holder.name, "keep_it");
}

struct later {
  int descriptor;
  unsigned milliseconds;
};

static void *run_later(void *argument) {
  struct later *later = argument;
  pthread_setname_np(pthread_self(), "writer");
  pass(later->milliseconds);
  // Eight bytes, which an eventfd(2) wants, too.
  uint64_t one = 1;
  if (write(later->descriptor, &one, sizeof one) < 0) abort();
  free(later);
  return NULL;
}

void bench_write_later(int descriptor, unsigned milliseconds) {
  struct later *later = malloc(sizeof *later);
  if (!later) abort();
  *later = (struct later){descriptor, milliseconds};
  pthread_t thread;
  if (pthread_create(&thread, NULL, run_later, later)) abort();
  pthread_detach(thread);
}
