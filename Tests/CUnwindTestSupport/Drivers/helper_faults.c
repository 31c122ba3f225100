// Captures by stop while the helper is killed, signals arrive, or the process is stopped.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"
#include "Support/bounded.h"

typedef struct scene {
  pid_t capturer;
  int signal_for_helpers;
  cunwind_test_thread *thread_state;
  uint32_t is_over;
  uint64_t disturbances;
} scene;

static uint64_t arrived_signals;

static bool is_over(const scene *scene) { return __atomic_load_n(&scene->is_over, __ATOMIC_ACQUIRE); }

static void *signal_helpers(void *context) {
  scene *scene = context;
  int file = cunwind_test_open_children(scene->capturer);
  unsigned seed = 1;
  pid_t spared = 0;
  while (file >= 0 && !is_over(scene)) {
    pid_t child = cunwind_test_first_child(file);
    if (child <= 0 || child == spared) continue;
    // One helper in eight is left alone: on a slow machine the signal would come before the end of every one.
    if (rand_r(&seed) % 8 == 0) {
      spared = child;
      continue;
    }
    // A helper lives for about 60 us, and the signal arrives at a random point of that time.
    for (volatile int delay = rand_r(&seed) % 40000; delay > 0; delay--) continue;
    if (kill(child, scene->signal_for_helpers) == 0) scene->disturbances++;
  }
  if (file >= 0) close(file);
  return NULL;
}

static void count_signal(int number) {
  (void)number;
  __atomic_fetch_add(&arrived_signals, 1, __ATOMIC_RELAXED);
}

static void *send_signals(void *context) {
  scene *scene = context;
  siginfo_t info;
  memset(&info, 0, sizeof info);
  info.si_code = SI_QUEUE;
  while (!is_over(scene)) {
    // EAGAIN: the queue is full. Try again with the next signal.
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), cunwind_test_thread_tid(scene->thread_state), SIGRTMIN + 7, &info) ==
        0) {
      scene->disturbances++;
    }
    usleep(100);
  }
  return NULL;
}

static cunwind_test_fault_result disturb(uint32_t milliseconds, void *(*disturber)(void *), int signal_for_helpers) {
  static cunwind_stack stack;
  cunwind_test_fault_result result;
  memset(&result, 0, sizeof result);
  scene scene = {.capturer = gettid(), .signal_for_helpers = signal_for_helpers};
  pthread_t thread;
  cunwind_engine *engine = cunwind_test_engine(27);
  scene.thread_state = engine ? cunwind_test_thread_start(CUNWIND_TEST_SPINNING, 10) : NULL;
  if (!scene.thread_state) return result;
  cunwind_engine_refresh_images(engine);
  cunwind_thread *captured =
      cunwind_thread_open(cunwind_test_thread_tid(scene.thread_state), CUNWIND_ALL_THREAD_FILES, NULL);
  bool is_disturbed = disturber && pthread_create(&thread, NULL, disturber, &scene) == 0;
  uint64_t deadline = cunwind_test_milliseconds_now() + milliseconds;
  while (cunwind_test_milliseconds_now() < deadline) {
    cunwind_capture_info info;
    cunwind_status status = cunwind_capture_stop(engine, captured, &stack, &info);
    if (status == CUNWIND_OK) {
      result.captures++;
    } else if (cunwind_test_had_no_time(status, &info)) {
      result.timed_out++;
    } else {
      result.failed++;
      result.last_status = status;
      result.last_error = info.error;
    }
    if (info.capture_nanoseconds > result.slowest_capture_nanoseconds) {
      result.slowest_capture_nanoseconds = info.capture_nanoseconds;
    }
  }
  __atomic_store_n(&scene.is_over, 1, __ATOMIC_RELEASE);
  if (is_disturbed) pthread_join(thread, NULL);
  usleep(20000);
  result.disturbances = scene.disturbances;
  cunwind_thread_close(captured);
  result.rounds = cunwind_test_thread_stop(scene.thread_state);
  cunwind_engine_destroy(engine);
  while (waitpid(-1, NULL, WNOHANG | __WALL) > 0) result.zombies++;
  return result;
}

cunwind_test_fault_result cunwind_test_kill_helpers(uint32_t milliseconds) {
  return disturb(milliseconds, signal_helpers, SIGKILL);
}

cunwind_test_fault_result cunwind_test_stop_helpers(uint32_t milliseconds) {
  return disturb(milliseconds, signal_helpers, SIGSTOP);
}

cunwind_test_fault_result cunwind_test_signal_storm(uint32_t milliseconds) {
  struct sigaction action, before;
  memset(&action, 0, sizeof action);
  action.sa_handler = count_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGRTMIN + 7, &action, &before);
  arrived_signals = 0;
  cunwind_test_fault_result result = disturb(milliseconds, send_signals, 0);
  sigaction(SIGRTMIN + 7, &before, NULL);
  result.lost = result.disturbances - __atomic_load_n(&arrived_signals, __ATOMIC_RELAXED);
  return result;
}

cunwind_test_fault_result cunwind_test_job_control(uint32_t milliseconds) {
  cunwind_test_fault_result result;
  memset(&result, 0, sizeof result);
  cunwind_test_fault_result *shared =
      mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return result;
  pid_t child = fork();
  if (child == 0) {
    *shared = disturb(milliseconds, NULL, 0);
    _exit(0);
  }
  uint64_t stops = 0, deadline = cunwind_test_milliseconds_now() + milliseconds;
  while (child > 0 && cunwind_test_milliseconds_now() + 50 < deadline) {
    usleep(3000);
    kill(child, SIGSTOP);
    stops++;
    usleep(3000);
    kill(child, SIGCONT);
  }
  // A child that hangs counts as a child without rounds.
  int status = 0;
  if (child > 0) cunwind_test_await_child(child, &status);
  result = *shared;
  result.disturbances = stops;
  munmap(shared, sizeof *shared);
  return result;
}
