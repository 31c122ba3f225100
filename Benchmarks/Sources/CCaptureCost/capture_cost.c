#define _GNU_SOURCE
#include <CUnwind.h>
#include <execinfo.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "CCaptureCost.h"

#define FRAME_BYTES 1024
#define MAXIMUM_FRAMES 512
#define MAXIMUM_STACK_BYTES (1024 * 1024)

// The captured thread. It reads the clock as fast as possible.
static struct {
  pthread_t thread;
  pid_t tid;
  uintptr_t stack_top;
  int is_blocked, is_stopping;
  int pipe[2];
  uint64_t longest_gap, looks;
} target;

// The results of the reference handlers.
static struct {
  sem_t done;
  void *frames[MAXIMUM_FRAMES];
  int frame_count;
  char copy[MAXIMUM_STACK_BYTES];
} handler_result;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void watch_the_clock(void) {
  uint64_t last = now();
  while (!__atomic_load_n(&target.is_stopping, __ATOMIC_ACQUIRE)) {
    uint64_t time = now();
    if (time - last > __atomic_load_n(&target.longest_gap, __ATOMIC_RELAXED)) {
      __atomic_store_n(&target.longest_gap, time - last, __ATOMIC_RELAXED);
    }
    last = time;
    __atomic_store_n(&target.looks, target.looks + 1, __ATOMIC_RELAXED);
  }
}

__attribute__((noinline)) static void descend(size_t frames) {
  volatile char frame[FRAME_BYTES];
  frame[0] = 1;
  if (frames > 1) {
    descend(frames - 1);
  } else {
    __atomic_store_n(&target.tid, gettid(), __ATOMIC_RELEASE);
    char byte;
    if (target.is_blocked) {
      while (read(target.pipe[0], &byte, 1) < 0) {
      }
    } else {
      watch_the_clock();
    }
  }
  frame[1] = 1;
}

static void *run_target(void *bytes) {
  // Set the signal mask: a thread of libdispatch may start this one, which then inherits a mask that blocks signals.
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, NULL);
  target.stack_top = (uintptr_t)__builtin_frame_address(0);
  descend((size_t)bytes / (FRAME_BYTES + 32));
  return NULL;
}

static int start_target(size_t stack_bytes, int is_blocked) {
  memset(&target, 0, sizeof target);
  target.is_blocked = is_blocked;
  if (pipe(target.pipe) < 0) return -1;
  if (pthread_create(&target.thread, NULL, run_target, (void *)stack_bytes) != 0) return -1;
  while (!__atomic_load_n(&target.tid, __ATOMIC_ACQUIRE)) usleep(100);
  usleep(10000);  // Wait until it blocks, or runs at full speed.
  return 0;
}

static void stop_target(void) {
  __atomic_store_n(&target.is_stopping, 1, __ATOMIC_RELEASE);
  close(target.pipe[1]);  // Its read ends with 0.
  pthread_join(target.thread, NULL);
  close(target.pipe[0]);
}

static void copy_in_handler(int number) {
  (void)number;
  uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  size_t size = target.stack_top - here;
  memcpy(handler_result.copy, (const void *)here, size < MAXIMUM_STACK_BYTES ? size : MAXIMUM_STACK_BYTES);
  sem_post(&handler_result.done);
}

static void backtrace_in_handler(int number) {
  (void)number;
  handler_result.frame_count = backtrace(handler_result.frames, MAXIMUM_FRAMES);
  sem_post(&handler_result.done);
}

static int signal_target(void (*handler)(int)) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  if (sigaction(SIGUSR1, &action, NULL) < 0 || tgkill(getpid(), target.tid, SIGUSR1) < 0) return -1;
  sem_wait(&handler_result.done);
  return 0;
}

// Captures once. Returns the number of frames, or -1.
static int capture(capture_way way, cunwind_engine *engine, cunwind_thread *thread, cunwind_stack *stack) {
  cunwind_capture_info info;
  cunwind_status status = CUNWIND_OK;
  switch (way) {
    case CAPTURE_NOTHING:
      usleep(100);
      return 0;
    case CAPTURE_READ:
      status = cunwind_capture_read(engine, thread, stack, &info);
      break;
    case CAPTURE_STOP:
      status = cunwind_capture_stop(engine, thread, stack, &info);
      break;
    case CAPTURE_SIGNAL:
      status = cunwind_capture_signal(engine, thread, stack, &info);
      break;
    case CAPTURE_PLAIN_SIGNAL_COPY:
      return signal_target(copy_in_handler);
    case CAPTURE_BACKTRACE_IN_HANDLER:
      return signal_target(backtrace_in_handler) < 0 ? -1 : handler_result.frame_count;
  }
  return status == CUNWIND_OK && stack->end == CUNWIND_END_COMPLETE ? (int)stack->frame_count : -1;
}

// Waits until the thread runs again after a capture.
static void await_target(void) {
  if (target.is_blocked) return;
  uint64_t looks = __atomic_load_n(&target.looks, __ATOMIC_RELAXED);
  while (__atomic_load_n(&target.looks, __ATOMIC_RELAXED) < looks + 100) usleep(50);
}

double capture_cost(capture_way way, size_t stack_bytes, size_t count, uint64_t *held, uint64_t *whole) {
  void *unused[1];
  backtrace(unused, 1);  // Loads libgcc_s, because a handler must not load it (backtrace(3)).
  sem_init(&handler_result.done, 0, 0);
  cunwind_stack *stack = malloc(sizeof *stack);
  cunwind_engine *engine = cunwind_engine_create(&(cunwind_options){.signal_number = SIGPROF});
  if (!stack || !engine || start_target(stack_bytes, way == CAPTURE_READ) < 0) return -1;
  cunwind_engine_refresh_images(engine);
  cunwind_thread *thread = cunwind_thread_open(target.tid, CUNWIND_ALL_THREAD_FILES, NULL);
  double frames = 0;
  for (size_t index = 0; thread && index < count && frames >= 0; index++) {
    usleep(1000);
    __atomic_store_n(&target.longest_gap, 0, __ATOMIC_RELAXED);
    uint64_t began = now();
    int found = capture(way, engine, thread, stack);
    whole[index] = now() - began;
    await_target();
    held[index] = __atomic_load_n(&target.longest_gap, __ATOMIC_RELAXED);
    frames = found < 0 ? -1 : frames + found;
  }
  if (!thread) frames = -1;
  cunwind_thread_close(thread);
  stop_target();
  cunwind_engine_destroy(engine);
  free(stack);
  return frames < 0 ? -1 : frames / (double)count;
}

uint64_t engine_creation_cost(void) {
  uint64_t begin = now();
  cunwind_engine *engine = cunwind_engine_create(&(cunwind_options){.signal_number = SIGPROF});
  uint64_t took = now() - begin;
  if (!engine) return 0;
  cunwind_engine_destroy(engine);
  return took;
}
