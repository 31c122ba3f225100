// Compares the engine's list of images with the dynamic linker's.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "Engine/engine.h"
#include "Support/bounded.h"
#include "Support/checks.h"

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

void cunwind_check_listed_images(int unused) {
  (void)unused;
  cunwind_engine *engine = cunwind_test_engine(SIGURG);
  if (!EXPECT(engine)) return;
  size_t listed = cunwind_engine_refresh_images(engine);
  struct comparison comparison = {.engine = engine};
  dl_iterate_phdr(look_for, &comparison);
  cunwind_test_say("%zu images", comparison.count);
  EXPECT(comparison.missing == 0 && comparison.count == listed && listed >= 3);
  cunwind_engine_destroy(engine);
}

void cunwind_check_loaded_image(int unused) {
  (void)unused;
  size_t counts[4];
  uint64_t generations[4];
  cunwind_engine *engine = cunwind_test_engine(SIGURG);
  void *library = NULL;
  if (!EXPECT(engine)) return;
  for (int step = 0; step < 4; step++) {
    // This program does not use this library otherwise.
    if (step == 1) library = dlopen("libBrokenLocale.so.1", RTLD_NOW);
    if (step == 3 && EXPECT(library)) dlclose(library);
    counts[step] = cunwind_engine_refresh_images(engine);
    generations[step] = cunwind_engine_image_generation(engine);
  }
  cunwind_test_say("%zu, %zu, %zu, %zu images", counts[0], counts[1], counts[2], counts[3]);
  EXPECT(counts[1] == counts[0] + 1 && counts[2] == counts[1] && counts[3] == counts[0]);
  EXPECT(generations[0] != generations[1] && generations[2] != generations[3] && generations[0] != generations[3]);
  // Nothing changed.
  EXPECT(generations[1] == generations[2]);
  cunwind_engine_destroy(engine);
}

// Returns whether the engine lists a loaded library at its place, once.
static bool is_listed(void *library) {
  struct link_map *map = NULL;
  cunwind_engine *engine = cunwind_test_engine(SIGURG);
  cunwind_image image;
  unsigned count = 0;
  if (!engine || !library || dlinfo(library, RTLD_DI_LINKMAP, &map) < 0) return false;
  cunwind_engine_refresh_images(engine);
  for (size_t index = 0; cunwind_engine_image(engine, index, &image); index++) {
    uint64_t dynamic = (uint64_t)(uintptr_t)map->l_ld;
    count += image.base == map->l_addr && image.low <= dynamic && dynamic < image.high &&
             strcmp(image.path, map->l_name) == 0;
  }
  cunwind_test_say("%s: %u times", map->l_name, count);
  cunwind_engine_destroy(engine);
  return count == 1;
}

bool cunwind_test_lists_library(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  bool is_right = is_listed(library);
  if (library) dlclose(library);
  return is_right;
}

static void list_namespaces(int unused) {
  (void)unused;
  EXPECT(is_listed(dlopen("libBrokenLocale.so.1", RTLD_NOW)));
  // Each has its own C library, and the same dynamic linker.
  for (int count = 0; count < 2; count++) EXPECT(is_listed(dlmopen(LM_ID_NEWLM, "libBrokenLocale.so.1", RTLD_NOW)));
}

// A namespace stays for good, so a child process makes it. Before glibc 2.35 it is not shown.
void cunwind_check_namespaces(int unused) {
#if __GLIBC_PREREQ(2, 35)
  cunwind_test_expect_in_child(list_namespaces, unused);
#else
  (void)unused, (void)list_namespaces;
#endif
}

// Libraries that were found by a relative path before the program changed its directory, in its child.
static void list_relative_paths(int unused) {
  (void)unused;
  static const char *const paths[] = {"./libBrokenLocale.so.1", "./libthread_db.so.1", "./libanl.so.1",
                                      "./libnss_compat.so.2", "./libnss_hesiod.so.2"};
  const size_t count = sizeof paths / sizeof *paths;
  struct link_map *map = NULL;
  void *found = dlopen("libBrokenLocale.so.1", RTLD_NOW);
  if (!EXPECT(found && dlinfo(found, RTLD_DI_LINKMAP, &map) == 0)) return;
  char directory[PATH_MAX] = "";
  strncpy(directory, map->l_name, sizeof directory - 1);
  char *end = strrchr(directory, '/');
  dlclose(found);
  if (!EXPECT(end)) return;
  *end = 0;
  cunwind_engine *engine = cunwind_test_engine(SIGURG);
  if (!EXPECT(engine && chdir(directory) == 0)) return;
  unsigned relative = 0, whole = 0;
  uint64_t places[sizeof paths / sizeof *paths] = {0};
  for (size_t index = 0; index < count; index++) {
    void *library = dlopen(paths[index], RTLD_NOW);
    if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map) < 0 || map->l_name[0] == '/') continue;
    places[index] = map->l_addr;
    relative++;
  }
  EXPECT(chdir("/") == 0);
  uint64_t reads = engine->modules.mappings.reads;
  cunwind_engine_refresh_images(engine);
  reads = engine->modules.mappings.reads - reads;
  cunwind_image image;
  for (size_t index = 0; cunwind_engine_image(engine, index, &image); index++) {
    for (size_t place = 0; place < count; place++) {
      whole += places[place] != 0 && image.base == places[place] && image.path[0] == '/';
    }
  }
  cunwind_test_say("%u of %u paths, %llu reads", whole, relative, COUNT(reads));
  // The paths, and the mappings themselves if an image's headers are at an unusual place.
  // One that the program has loaded before has its whole path.
  EXPECT(relative >= 3 && whole == relative && reads <= 2);
  cunwind_engine_destroy(engine);
}

void cunwind_check_relative_paths(int unused) { cunwind_test_expect_in_child(list_relative_paths, unused); }

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
  refreshment->is_done = cunwind_test_join(refreshment->thread);
  return 1;
}

void cunwind_check_held_linker_lock(int unused) {
  (void)unused;
  struct refreshment refreshment = {.engine = cunwind_test_engine(SIGURG)};
  if (!EXPECT(refreshment.engine)) return;
  dl_iterate_phdr(refresh_elsewhere, &refreshment);
  // This thread has released the lock, so the other one can continue.
  if (!EXPECT(refreshment.is_done) && refreshment.thread) pthread_join(refreshment.thread, NULL);
  cunwind_engine_destroy(refreshment.engine);
}
