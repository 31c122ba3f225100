// An image whose file is cut short while it is mapped, as when a new version is copied over it.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "Support/checks.h"

/// A small library that is in every glibc system and that this program does not link.
#define LIBRARY "libBrokenLocale.so.1"

// Copies the library to the new file `path`. Returns its descriptor, or -1.
static int copy_library(char *path) {
  void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  struct link_map *map = NULL;
  if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map) < 0) return -1;
  int from = open(map->l_name, O_RDONLY | O_CLOEXEC), to = mkstemp(path);
  struct stat status;
  bool is_copied = from >= 0 && to >= 0 && fstat(from, &status) == 0 &&
                   sendfile(to, from, NULL, (size_t)status.st_size) == status.st_size;
  if (from >= 0) close(from);
  dlclose(library);
  return is_copied ? to : -1;
}

static bool lists(const cunwind_engine *engine, size_t count, const char *path) {
  cunwind_image image;
  for (size_t index = 0; index < count; index++) {
    if (cunwind_engine_image(engine, index, &image) && strcmp(image.path, path) == 0) return true;
  }
  return false;
}

static void list_cut_image(int unused) {
  (void)unused;
  char path[] = "/tmp/stallwatch-cut-image-XXXXXX";
  int file = copy_library(path);
  if (!EXPECT(file >= 0 && dlopen(path, RTLD_NOW | RTLD_LOCAL))) return;
  // The second engine, because the first one would not rebuild its list.
  for (int is_cut = 0; is_cut < 2; is_cut++) {
    cunwind_engine *engine = cunwind_test_engine(SIGPROF);
    EXPECT(engine && lists(engine, cunwind_engine_refresh_images(engine), path) == !is_cut);
    EXPECT(ftruncate(file, 0) == 0);
    cunwind_engine_destroy(engine);
  }
  unlink(path);
}

// A library with a short file cannot be closed, so a child process loads it.
void cunwind_check_cut_image(int unused) { cunwind_test_expect_in_child(list_cut_image, unused); }
