// Compares the engine's list of images with the dynamic linker's.

#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "CUnwindTestSupport.h"

struct comparison {
  const cunwind_engine *engine;
  size_t count, missing;
};

static bool is_same(const cunwind_image *image, const struct dl_phdr_info *info, bool is_executable) {
  if (image->base != info->dlpi_addr) return false;
  return is_executable ? image->path[0] == '/' : strcmp(image->path, info->dlpi_name) == 0;
}

static int look_for(struct dl_phdr_info *info, size_t size, void *context) {
  (void)size;
  struct comparison *comparison = context;
  cunwind_image image;
  bool is_found = false;
  for (size_t index = 0; !is_found && cunwind_engine_image(comparison->engine, index, &image); index++) {
    is_found = is_same(&image, info, comparison->count == 0);
  }
  comparison->count++;
  if (!is_found) comparison->missing++;
  return 0;
}

size_t cunwind_test_missing_images(const cunwind_engine *engine, size_t *linked) {
  struct comparison comparison = {.engine = engine};
  dl_iterate_phdr(look_for, &comparison);
  *linked = comparison.count;
  return comparison.missing;
}

static void *refresh(void *engine) {
  cunwind_engine_refresh_images(engine);
  return NULL;
}

struct refreshment {
  cunwind_engine *engine;
  pthread_t thread;
  bool is_done;
};

static int refresh_elsewhere(struct dl_phdr_info *info, size_t size, void *context) {
  (void)info;
  (void)size;
  struct refreshment *refreshment = context;
  if (pthread_create(&refreshment->thread, NULL, refresh, refreshment->engine) != 0) return 1;
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += 2;
  refreshment->is_done = pthread_timedjoin_np(refreshment->thread, NULL, &limit) == 0;
  return 1;
}

bool cunwind_test_refreshes_beside_held_linker_lock(cunwind_engine *engine) {
  struct refreshment refreshment = {.engine = engine};
  dl_iterate_phdr(refresh_elsewhere, &refreshment);
  // This thread has released the lock, so the other one can continue.
  if (!refreshment.is_done && refreshment.thread) pthread_join(refreshment.thread, NULL);
  return refreshment.is_done;
}
