// Which processors the helper may be on, and the thread that made it afterwards.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"

enum { CAPTURES = 2000 };

typedef struct scene {
  pid_t capturer;
  uint32_t is_over;
  cunwind_test_placement_result *result;
} scene;

// proc(5): /proc/<pid>/task/<tid>/children lists children of any exit signal.
static void *look_at_helpers(void *context) {
  scene *scene = context;
  char path[64], text[256];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)scene->capturer);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  while (file >= 0 && !__atomic_load_n(&scene->is_over, __ATOMIC_ACQUIRE)) {
    ssize_t length = pread(file, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = 0;
    pid_t child = (pid_t)strtol(text, NULL, 10);
    cpu_set_t processors;
    // ESRCH: it has ended meanwhile.
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
  cunwind_test_poser *poser = cunwind_test_poser_start(CUNWIND_TEST_SPINNING, 3);
  cunwind_engine *engine = cunwind_engine_create(27);
  cunwind_thread *thread = engine && poser ? cunwind_thread_open(engine, cunwind_test_poser_tid(poser)) : NULL;
  if (!thread || sched_getaffinity(0, sizeof before, &before) != 0) return false;
  cunwind_engine_refresh_images(engine);
  if (pthread_create(&looker, NULL, look_at_helpers, &scene) != 0) return false;
  for (int count = 0; count < CAPTURES; count++) {
    cunwind_capture_info info;
    result->captures += cunwind_capture_stop(engine, thread, &stack, &info) == CUNWIND_OK;
  }
  __atomic_store_n(&scene.is_over, 1, __ATOMIC_RELEASE);
  pthread_join(looker, NULL);
  result->roams = sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&before, &after);
  cunwind_thread_close(thread);
  cunwind_engine_destroy(engine);
  cunwind_test_poser_stop(poser);
  return true;
}
