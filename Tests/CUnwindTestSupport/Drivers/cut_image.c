// An image whose file is cut short while it is mapped, as when a new version is copied over it.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"
#include "Support/bounded.h"

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

// Returns 0 if the image was listed, and left out after its file was cut short.
static int list_cut_image(void) {
  char path[] = "/tmp/stallwatch-cut-image-XXXXXX";
  int file = copy_library(path);
  if (file < 0 || !dlopen(path, RTLD_NOW | RTLD_LOCAL)) return 1;
  cunwind_engine *engine = cunwind_test_engine(SIGPROF);
  bool was_listed = engine && lists(engine, cunwind_engine_refresh_images(engine), path);
  int status = was_listed && ftruncate(file, 0) == 0 ? 0 : 2;
  unlink(path);
  cunwind_engine_destroy(engine);
  if (status != 0) return status;
  // A new engine, because the old one would not rebuild its list.
  engine = cunwind_test_engine(SIGPROF);
  if (!engine) return 3;
  bool is_listed = lists(engine, cunwind_engine_refresh_images(engine), path);
  return is_listed ? 4 : 0;
}

int cunwind_test_cut_image(void) {
  // A library with a short file cannot be closed, so a child process loads it.
  pid_t child = fork();
  if (child == 0) _exit(list_cut_image());
  int status = -1;
  if (child < 0 || cunwind_test_await_child(child, &status) != 0) return -1;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}
