// Which unwinder an engine uses, what is not taken for libunwind, and whose symbols and locks it leaves alone.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "Support/checks.h"
#include "Unwinding/unwind.h"

void cunwind_check_unwinder_name(int unused) {
  (void)unused;
  cunwind_engine *engine = cunwind_test_engine(SIGURG);
  if (!EXPECT(engine)) return;
  cunwind_unwinder_status unwinder = cunwind_engine_unwinder(engine);
  cunwind_test_say("%s (%s)", unwinder.name, unwinder.reason ? unwinder.reason : "as wanted");
  if (cunwind_test_settings_now().wants_libunwind) {
    EXPECT(strncmp(unwinder.name, "libunwind 1.", 12) == 0 && !unwinder.reason);
  } else {
    EXPECT(strcmp(unwinder.name, "built-in") == 0);
    EXPECT(unwinder.reason && strcmp(unwinder.reason, "STALLWATCH_UNWINDER is builtin") == 0);
  }
  cunwind_engine_destroy(engine);
}

// Stores the path of the file that has a symbol of a library, or of the program if `library` is NULL.
static bool find_file(const char *library, const char *symbol, char path[4096]) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL), *found = handle ? dlsym(handle, symbol) : NULL;
  Dl_info information;
  if (!found || dladdr(found, &information) == 0) return false;
  snprintf(path, 4096, "%s", information.dli_fname);
  return true;
}

// A program keeps its own: RTLD_LOCAL hides libunwind's, and `backtrace` stays glibc's.
void cunwind_check_unwinder_symbols(int unused) {
  (void)unused;
  static const char *const names[] = {"_Unwind_RaiseException", "_Unwind_Backtrace", "_Unwind_Resume", "backtrace"};
  char path[4096];
  cunwind_engine *engine = cunwind_test_engine(SIGURG);
  for (int index = 0; index < 4; index++) {
    if (!EXPECT(find_file(NULL, names[index], path) && !strstr(path, "libunwind")))
      cunwind_test_say(": %s", names[index]);
  }
  EXPECT(!dlsym(RTLD_DEFAULT, "_Ux86_64_step") && !dlsym(RTLD_DEFAULT, "_Uaarch64_step"));
  cunwind_engine_destroy(engine);
}

static void use_own_unwinder(int unused) {
  (void)unused;
  cunwind_engine *engine = cunwind_test_engine(27);
  EXPECT(engine && strcmp(cunwind_engine_unwinder(engine).name, "built-in") == 0);
}

// Its parent may have held libunwind's locks.
void cunwind_check_unwinder_in_child(int unused) {
  cunwind_engine *engine = cunwind_test_engine(27);
  EXPECT(engine);
  cunwind_test_expect_in_child(use_own_unwinder, unused);
  cunwind_engine_destroy(engine);
}

// Loads a file as libunwind, and expects that it is none, for a reason that contains `expected`.
static void expect_refusal(const char *path, const char *expected) {
  char reason[CUNWIND_UNWINDER_REASON_BYTES] = "";
  EXPECT(!cunwind_library_create(path, reason));
  cunwind_test_say("\n  %s", reason);
  EXPECT(reason[0] && strstr(reason, expected));
}

// Writes the first `size` bytes of a library in place of `path`; all if it has fewer.
static void copy(const char *library, size_t size, const char *path) {
  unlink(path);
  int from = open(library, O_RDONLY | O_CLOEXEC), to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  EXPECT(from >= 0 && to >= 0 && sendfile(to, from, NULL, size) > 0);
  close(from);
  close(to);
}

// Files with libunwind's name that are something else.
void cunwind_check_unwinder_files(int unused) {
  (void)unused;
  char directory[] = "/tmp/stallwatch-unwinder-XXXXXX", path[64], library[4096];
  if (!EXPECT(mkdtemp(directory))) return;
  snprintf(path, sizeof path, "%s/libunwind-x86_64.so.8", directory);
  EXPECT(mkdir(path, 0700) == 0);
  expect_refusal(path, "");
  rmdir(path);
  if (EXPECT(find_file("libunwind-x86_64.so.8", "_Ux86_64_step", library) ||
             find_file("libunwind-aarch64.so.8", "_Uaarch64_step", library))) {
    copy(library, 10, path);
    expect_refusal(path, "file too short");
    copy(library, 512, path);
    expect_refusal(path, "");
  }
  if (EXPECT(find_file("libm.so.6", "cos", library))) {
    copy(library, SIZE_MAX >> 1, path);
    expect_refusal(path, "lacks functions of libunwind");
  }
  unlink(path);
  rmdir(directory);
}
