// Captures by stop while the helper is killed, signals arrive, or the process is stopped.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "Support/bounded.h"
#include "Support/checks.h"

/// The captures while the helper, the thread or the process was killed, stopped or signaled.
typedef struct result {
  uint64_t captures;   ///< With a stack.
  uint64_t timed_out;  ///< The helper was not given a CPU in time.
  uint64_t failed;     ///< Anything else; `last_status` and `last_error` say what.
  int last_status, last_error;
  uint64_t disturbances;  ///< Helpers killed or stopped; signals sent; stops of the whole process.
  uint64_t rounds;        ///< Of the captured thread, after the last disturbance. 0: it was left stopped.
  uint64_t zombies;
  uint64_t slowest_capture_nanoseconds;
} result;

typedef struct scene {
  pid_t capturer;
  int signal_for_helpers;
  pid_t captured;
  uint32_t is_over;
  uint64_t disturbances;
} scene;

static uint64_t arrived_signals;

static bool is_over(const scene *scene) { return __atomic_load_n(&scene->is_over, __ATOMIC_ACQUIRE); }

// Opens the list of a thread's children with any exit signal (proc(5), children).
static int open_children(pid_t thread) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)thread);
  return open(path, O_RDONLY | O_CLOEXEC);
}

// Returns the first child in the list now; 0 if there is none.
static pid_t first_child(int children) {
  char text[256];
  ssize_t length = pread(children, text, sizeof text - 1, 0);
  text[length > 0 ? length : 0] = 0;
  return (pid_t)strtol(text, NULL, 10);
}

static void *signal_helpers(void *context) {
  scene *scene = context;
  int file = open_children(scene->capturer);
  unsigned seed = 1;
  pid_t spared = 0;
  while (file >= 0 && !is_over(scene)) {
    pid_t child = first_child(file);
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
    scene->disturbances += syscall(SYS_rt_tgsigqueueinfo, getpid(), scene->captured, SIGRTMIN + 7, &info) == 0;
    usleep(100);
  }
  return NULL;
}

static result disturb(void *(*disturber)(void *), int signal_for_helpers) {
  result result = {0};
  pthread_t thread;
  cunwind_test_subject subject;
  if (!cunwind_test_subject_start(&subject, CUNWIND_TEST_SPINNING, 10, 27)) return result;
  scene scene = {.capturer = gettid(), .signal_for_helpers = signal_for_helpers, .captured = subject.tid};
  bool is_disturbed = disturber && pthread_create(&thread, NULL, disturber, &scene) == 0;
  uint64_t deadline = cunwind_test_milliseconds_now() + cunwind_test_settings_now().fault_milliseconds;
  while (cunwind_test_milliseconds_now() < deadline) {
    cunwind_status status = cunwind_test_capture(&subject, cunwind_capture_stop);
    if (status == CUNWIND_OK) {
      result.captures++;
    } else if (status == CUNWIND_TIMED_OUT) {
      result.timed_out++;
    } else if (!cunwind_test_awaits_helper(status, &subject.info)) {
      result.failed++;
      result.last_status = status;
      result.last_error = subject.info.error;
    }
    if (subject.info.capture_nanoseconds > result.slowest_capture_nanoseconds) {
      result.slowest_capture_nanoseconds = subject.info.capture_nanoseconds;
    }
  }
  __atomic_store_n(&scene.is_over, 1, __ATOMIC_RELEASE);
  if (is_disturbed) pthread_join(thread, NULL);
  usleep(20000);
  result.disturbances = scene.disturbances;
  result.rounds = cunwind_test_subject_stop(&subject);
  result.zombies = cunwind_test_reap_zombies();
  return result;
}

static void expect_that_all_goes_on(const result *result) {
  cunwind_test_say("%llu disturbances, %llu captures, %llu late, %llu failed (status %d, errno %d), %llu us at most",
                   COUNT(result->disturbances), COUNT(result->captures), COUNT(result->timed_out),
                   COUNT(result->failed), result->last_status, result->last_error,
                   COUNT(result->slowest_capture_nanoseconds / 1000));
  EXPECT(result->disturbances > 0);
  EXPECT(result->rounds > 0);
  EXPECT(result->zombies == 0);
}

void cunwind_check_killed_helper(int unused) {
  (void)unused;
  result result = disturb(signal_helpers, SIGKILL);
  expect_that_all_goes_on(&result);
  // Some were killed before they had answered.
  EXPECT(result.failed > 0 && result.captures > 0);
}

// A stopped helper behaves like a helper that gets no CPU.
void cunwind_check_stopped_helper(int unused) {
  (void)unused;
  result result = disturb(signal_helpers, SIGSTOP);
  expect_that_all_goes_on(&result);
  EXPECT(result.timed_out > 0 && result.failed == 0);
  // The time limit of a stop, plus the helper's grace period.
  EXPECT(result.slowest_capture_nanoseconds < 1000000000);
}

// Queued real-time signals, which must all arrive.
void cunwind_check_signal_storm(int unused) {
  (void)unused;
  struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART}, before;
  sigaction(SIGRTMIN + 7, &action, &before);
  arrived_signals = 0;
  result result = disturb(send_signals, 0);
  sigaction(SIGRTMIN + 7, &before, NULL);
  expect_that_all_goes_on(&result);
  EXPECT(result.disturbances == __atomic_load_n(&arrived_signals, __ATOMIC_RELAXED));
  EXPECT(result.failed == 0 && result.captures > 0);
  // Busy CPUs can keep the helper waiting for longer than the limit of a stop (seen once in tens of thousands). One
  // helper always may wait so long: it takes an eighth of the time.
  EXPECT(result.timed_out * 100 <= result.captures + 100 || cunwind_test_settings_now().is_emulated);
}

// A child captures its own thread, and is stopped and continued (SIGSTOP, SIGCONT).
void cunwind_check_job_control(int unused) {
  (void)unused;
  result *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (!EXPECT(shared != MAP_FAILED)) return;
  pid_t child = fork();
  if (child == 0) {
    *shared = disturb(NULL, 0);
    _exit(0);
  }
  uint64_t stops = 0, deadline = cunwind_test_milliseconds_now() + cunwind_test_settings_now().fault_milliseconds;
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
  shared->disturbances = stops;
  expect_that_all_goes_on(shared);
  EXPECT(shared->captures > 0);
  munmap(shared, sizeof *shared);
}
