// A stop of a thread that gets no CPU, in a call that returns EINTR after such a request.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "Support/bounded.h"
#include "Support/checks.h"

enum { WAIT_MILLISECONDS = 600, STARVED_MILLISECONDS = 300 };

typedef struct starved {
  int processor;
  pid_t waiter;
  int wait_error;
  bool is_starving, has_failed;
} starved;

static bool stay_on(int processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  return sched_setaffinity(0, sizeof only, &only) == 0;
}

static void *wait_for_events(void *context) {
  starved *scene = context;
  struct epoll_event event;
  int file = epoll_create1(EPOLL_CLOEXEC);
  if (!stay_on(scene->processor)) scene->has_failed = true;
  __atomic_store_n(&scene->waiter, gettid(), __ATOMIC_RELEASE);
  uint64_t begin = cunwind_test_milliseconds_now();
  scene->wait_error = epoll_wait(file, &event, 1, WAIT_MILLISECONDS) < 0 ? errno : 0;
  if (scene->wait_error == 0 && cunwind_test_milliseconds_now() - begin < WAIT_MILLISECONDS - 1)
    scene->wait_error = ETIME;
  close(file);
  return NULL;
}

static void *starve(void *context) {
  starved *scene = context;
  struct sched_param priority = {.sched_priority = 1};
  scene->has_failed |= !stay_on(scene->processor) || sched_setscheduler(0, SCHED_FIFO, &priority) != 0;
  uint64_t end = cunwind_test_milliseconds_now() + STARVED_MILLISECONDS;
  __atomic_store_n(&scene->is_starving, true, __ATOMIC_RELEASE);
  while (!scene->has_failed && cunwind_test_milliseconds_now() < end) continue;
  return NULL;
}

static cunwind_status capture_starved(cunwind_engine *engine, starved *scene) {
  static cunwind_stack stack;
  cunwind_capture_info info;
  cunwind_thread_status look;
  pthread_t other;
  cunwind_thread *waiter = cunwind_thread_open(scene->waiter, CUNWIND_ALL_THREAD_FILES, NULL);
  if (!waiter) return CUNWIND_FAILED;
  do usleep(1000);
  while (cunwind_thread_inspect(waiter, &look) == CUNWIND_OK && !look.is_blocked);
  cunwind_status status = CUNWIND_FAILED;
  if (pthread_create(&other, NULL, starve, scene) == 0) {
    while (!__atomic_load_n(&scene->is_starving, __ATOMIC_ACQUIRE)) usleep(1000);
    if (!scene->has_failed) status = cunwind_capture_stop(engine, waiter, &stack, &info);
    cunwind_test_join(other);
  }
  cunwind_thread_close(waiter);
  return status;
}

// Whether this process may start a thread of real-time priority.
static bool may_starve(void) {
  struct sched_param real_time = {.sched_priority = 1}, none = {0};
  return sched_setscheduler(0, SCHED_FIFO, &real_time) == 0 && sched_setscheduler(0, SCHED_OTHER, &none) == 0;
}

// From 2.41 on, glibc makes the calls that can be cancelled on aarch64 in a function that overwrites the first argument.
bool cunwind_test_calls_can_restart(void) {
#if defined(__aarch64__)
  return strverscmp(gnu_get_libc_version(), "2.41") < 0;
#else
  return true;
#endif
}

// The thread stops after the capture has timed out, in a call that a stop interrupts.
void cunwind_check_late_stop(int unused) {
  (void)unused;
  cpu_set_t all;
  pthread_t waiter;
  starved scene;
  memset(&scene, 0, sizeof scene);
  if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2 || !may_starve()) {
    cunwind_test_say("not run: it needs two CPUs, and CAP_SYS_NICE or a limit for real-time priorities");
    return;
  }
  int own = 0;
  while (!CPU_ISSET(own, &all)) own++;
  scene.processor = own + 1;
  while (!CPU_ISSET(scene.processor, &all)) scene.processor++;
  cunwind_engine *engine = cunwind_test_engine(27);
  if (EXPECT(engine && stay_on(own) && pthread_create(&waiter, NULL, wait_for_events, &scene) == 0)) {
    while (__atomic_load_n(&scene.waiter, __ATOMIC_ACQUIRE) == 0) usleep(1000);
    cunwind_engine_refresh_images(engine);
    EXPECT(capture_starved(engine, &scene) == CUNWIND_TIMED_OUT);
    cunwind_test_join(waiter);
    cunwind_test_say("the call's errno is %d", scene.wait_error);
    EXPECT(!scene.has_failed);
    EXPECT(scene.wait_error == 0 || (scene.wait_error == EINTR && !cunwind_test_calls_can_restart()));
  }
  sched_setaffinity(0, sizeof all, &all);
  cunwind_engine_destroy(engine);
  EXPECT(cunwind_test_reap_zombies() == 0);
}
