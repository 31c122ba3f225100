// Loops that are well: a tool that reports one of these raises a false alarm. And the threads that cases wait for.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

// The threads that cases wait for

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

// The cases

static volatile uint64_t bits;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

CASE(do_nothing) { (void)milliseconds; }
CASE(draw_frame){SPIN(milliseconds, bits = bits * 31 + 7)} CASE(rest_briefly) {
  struct timespec left = {0, (long)milliseconds * 1000000};
  int result;
  while ((result = nanosleep(&left, &left)) < 0) NOTE(result);
}
CASE(read_briefly) {
  int ends[2];
  uint64_t byte;
  if (pipe(ends)) abort();
  bench_write_later(ends[1], milliseconds);
  ssize_t result;
  while ((result = read(ends[0], &byte, sizeof byte)) < 0) NOTE(result);
  close(ends[0]), close(ends[1]);
}
static void take(void *mutex) { pthread_mutex_lock(mutex); }
static void give(void *mutex) { pthread_mutex_unlock(mutex); }
CASE(lock_briefly) {
  bench_hold((struct bench_holder){take, give, &lock, milliseconds, "brief", false, {0}}, false);
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
}
CASE(show_dialog) { bench_run_nested(milliseconds); }
CASE(be_suspended) {
  // Another process stops this one in the middle of a short turn, as a shell's Ctrl-Z does.
  pid_t child = fork();
  if (child == 0) {
    char command[96];
    snprintf(command, sizeof command, "kill -STOP %d; sleep 0.4; kill -CONT %d", getppid(), getppid());
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
  }
  double until = bench_now() + milliseconds / 1e3;
  while (bench_now() < until) continue;
  while (waitpid(child, NULL, WNOHANG) == 0 && bench_now() < until + 0.5) continue;
  bench_gaps = 0;
  bench_excused = 1;
}
static void *wait_and_work(void *milliseconds) {
  unsigned left = *(unsigned *)milliseconds;
  rest_briefly(left);
  return NULL;
}
static void *compute(void *milliseconds) {
  double until = bench_now() + *(unsigned *)milliseconds / 1e3;
  while (bench_now() < until) bits++;
  return NULL;
}
CASE(start_workers) {
  // Workers that block and compute for longer than the threshold; the loop does not wait for them.
  static unsigned length = 450;
  (void)milliseconds;
  pthread_t threads[3];
  for (int index = 0; index < 3; index++) {
    if (pthread_create(&threads[index], NULL, index ? wait_and_work : compute, &length)) abort();
    pthread_detach(threads[index]);
  }
}

#define HEALTHY(set, name, function, milliseconds, turns, pause) \
  { set, name, #function, __FILE_NAME__, function##_line, function, "", milliseconds, turns, pause, true, false }

const struct bench_case bench_healthy[] = {
    HEALTHY("glib-a", "glib-a-idle", do_nothing, 1, 2, 600),
    HEALTHY("glib-a", "glib-a-game", draw_frame, 15, 35, 1),
    HEALTHY("glib-a", "glib-a-burst", draw_frame, 60, 4, 3),
    HEALTHY("glib-a", "glib-a-timers", do_nothing, 1, 300, 1),
    HEALTHY("glib-a", "glib-a-modal", show_dialog, 300, 1, 0),
    HEALTHY("glib-a", "glib-a-suspended", be_suspended, 30, 1, 0),
    HEALTHY("glib-b", "glib-b-rest", rest_briefly, 60, 4, 3),
    HEALTHY("glib-b", "glib-b-pipe", read_briefly, 50, 4, 3),
    HEALTHY("glib-b", "glib-b-lock", lock_briefly, 60, 4, 3),
    HEALTHY("glib-b", "glib-b-workers", start_workers, 1, 2, 300),
    HEALTHY("glib-b", "glib-b-frames", draw_frame, 30, 18, 0),
    HEALTHY("thread", "thread-idle", do_nothing, 1, 2, 500),
    HEALTHY("thread", "thread-game", draw_frame, 15, 35, 1),
    HEALTHY("thread", "thread-burst", draw_frame, 60, 4, 3),
    HEALTHY("thread", "thread-modal", show_dialog, 300, 1, 0),
    HEALTHY("cf", "cf-idle", do_nothing, 1, 2, 500),
    HEALTHY("cf", "cf-game", draw_frame, 15, 35, 1),
    HEALTHY("cf", "cf-modal", show_dialog, 300, 1, 0),
    HEALTHY("cf", "cf-rest", rest_briefly, 60, 4, 3),
    HEALTHY("swift", "swift-game", draw_frame, 15, 35, 1),
    HEALTHY("swift", "swift-burst", draw_frame, 60, 4, 3),
    {0},
};
