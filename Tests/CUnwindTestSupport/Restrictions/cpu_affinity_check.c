// The processors that helpers and their creator may use, and a thread that moves off one.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"
#include "Support/bounded.h"
#include "Support/children.h"

enum { CAPTURES = 2000, LONGEST_MILLISECONDS = 5000 };

typedef struct scene {
  pid_t capturer;
  uint32_t is_over;
  cunwind_test_placement_result *result;
} scene;

static void *look_at_helpers(void *context) {
  scene *scene = context;
  int file = cunwind_test_open_children(scene->capturer);
  while (file >= 0 && !__atomic_load_n(&scene->is_over, __ATOMIC_ACQUIRE)) {
    pid_t child = cunwind_test_first_child(file);
    cpu_set_t processors;
    // ESRCH: the helper has ended.
    if (child <= 0 || sched_getaffinity(child, sizeof processors, &processors) != 0) continue;
    scene->result->seen++;
    scene->result->bound += CPU_COUNT(&processors) == 1;
  }
  if (file >= 0) close(file);
  return NULL;
}

bool cunwind_test_placement(cunwind_test_placement_result *result) {
  static cunwind_stack stack;
  memset(result, 0, sizeof *result);
  scene scene = {.capturer = gettid(), .result = result};
  cpu_set_t before, after;
  pthread_t looker;
  cunwind_test_thread *thread_state = cunwind_test_thread_start(CUNWIND_TEST_SPINNING, 3);
  cunwind_engine *engine = cunwind_engine_create(27);
  cunwind_thread *thread =
      engine && thread_state ? cunwind_thread_open(engine, cunwind_test_thread_tid(thread_state)) : NULL;
  if (!thread || sched_getaffinity(0, sizeof before, &before) != 0) return false;
  cunwind_engine_refresh_images(engine);
  if (pthread_create(&looker, NULL, look_at_helpers, &scene) != 0) return false;
  uint64_t deadline = cunwind_test_milliseconds_now() + LONGEST_MILLISECONDS;
  for (int count = 0; count < CAPTURES && cunwind_test_milliseconds_now() < deadline; count++) {
    cunwind_capture_info info;
    result->captures += cunwind_capture_stop(engine, thread, &stack, &info) == CUNWIND_OK;
  }
  __atomic_store_n(&scene.is_over, 1, __ATOMIC_RELEASE);
  pthread_join(looker, NULL);
  result->roams = sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&before, &after);
  cunwind_thread_close(thread);
  cunwind_engine_destroy(engine);
  cunwind_test_thread_stop(thread_state);
  return true;
}

typedef struct leaving {
  cunwind_engine *engine, *unprobed;
  cunwind_test_leaving_result *result;
  bool is_set_up;
} leaving;

static void bind_to(int processor, cpu_set_t *only) {
  CPU_ZERO(only);
  CPU_SET(processor, only);
  sched_setaffinity(0, sizeof *only, only);
}

static void *leave(void *context) {
  leaving *leaving = context;
  cunwind_test_leaving_result *result = leaving->result;
  cpu_set_t all, only, after;
  if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2) return NULL;
  // Bind the thread while it reads its processor, then free it again.
  int here = sched_getcpu();
  bind_to(here, &only);
  result->leaves_its_only = cunwind_engine_leave_processor(leaving->engine, here);
  result->leaves_another = cunwind_engine_leave_processor(leaving->engine, here + 1);
  for (int tries = 0; tries < 100 && !result->leaves_own; tries++) {
    bind_to(here, &only);
    sched_setaffinity(0, sizeof all, &all);
    result->leaves_unprobed |= cunwind_engine_leave_processor(leaving->unprobed, here);
    result->leaves_own = cunwind_engine_leave_processor(leaving->engine, here);
  }
  result->is_free = sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&all, &after);
  leaving->is_set_up = true;
  return NULL;
}

bool cunwind_test_leaving(cunwind_test_leaving_result *result) {
  memset(result, 0, sizeof *result);
  leaving leaving = {cunwind_engine_create(27), cunwind_engine_create(27), result, false};
  pthread_t thread;
  if (!leaving.engine || !leaving.unprobed || cunwind_engine_probe_stop(leaving.engine, NULL) != CUNWIND_OK)
    return false;
  if (pthread_create(&thread, NULL, leave, &leaving) != 0) return false;
  pthread_join(thread, NULL);
  cunwind_engine_destroy(leaving.engine);
  cunwind_engine_destroy(leaving.unprobed);
  return leaving.is_set_up;
}
