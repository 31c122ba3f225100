// Loops that are well. A tool that reports one of these raises a false alarm.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"

static volatile uint64_t bits;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

CASE(do_nothing) { (void)milliseconds; }
CASE(draw_frame) { SPIN(milliseconds, bits = bits * 31 + 7) }
CASE(rest_briefly) {
  struct timespec left = {0, (long)milliseconds * 1000000};
  int result;
  while ((result = nanosleep(&left, &left)) < 0) NOTE(result);
}
CASE(read_briefly) {
  int ends[2];
  uint64_t byte;
  if (pipe(ends)) abort();
  bench_write_later(ends[1], milliseconds);
  NOTE(read(ends[0], &byte, sizeof byte));
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

#define HEALTHY(name, function, milliseconds, turns, pause) \
  ROW(name, function, "", milliseconds, turns, pause, true, false)

const struct bench_case bench_healthy[] = {
    HEALTHY("glib-a-idle", do_nothing, 1, 2, 600),
    HEALTHY("glib-a-game", draw_frame, 15, 35, 1),
    HEALTHY("glib-a-burst", draw_frame, 120, 4, 3),
    HEALTHY("glib-a-timers", do_nothing, 1, 300, 1),
    HEALTHY("glib-a-modal", show_dialog, 500, 1, 0),
    HEALTHY("glib-a-suspended", be_suspended, 30, 1, 0),
    HEALTHY("glib-b-rest", rest_briefly, 120, 4, 3),
    HEALTHY("glib-b-pipe", read_briefly, 100, 4, 3),
    HEALTHY("glib-b-lock", lock_briefly, 120, 4, 3),
    HEALTHY("glib-b-workers", start_workers, 1, 2, 300),
    HEALTHY("glib-b-frames", draw_frame, 30, 18, 0),
    HEALTHY("thread-idle", do_nothing, 1, 2, 500),
    HEALTHY("thread-game", draw_frame, 15, 35, 1),
    HEALTHY("thread-burst", draw_frame, 120, 4, 3),
    HEALTHY("thread-modal", show_dialog, 450, 1, 0),
    HEALTHY("cf-idle", do_nothing, 1, 2, 500),
    HEALTHY("cf-game", draw_frame, 15, 35, 1),
    HEALTHY("cf-modal", show_dialog, 450, 1, 0),
    HEALTHY("cf-rest", rest_briefly, 120, 4, 3),
    HEALTHY("swift-game", draw_frame, 15, 35, 1),
    HEALTHY("swift-burst", draw_frame, 120, 4, 3),
};
const unsigned bench_healthy_count = sizeof bench_healthy / sizeof *bench_healthy;
