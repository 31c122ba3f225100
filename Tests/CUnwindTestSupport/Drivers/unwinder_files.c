// Files that have libunwind's name, and are something else.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "CUnwindTestSupport.h"
#include "Unwinding/stepper.h"

bool cunwind_test_load_unwinder(const char *path, char *text, size_t size) {
  char reason[CUNWIND_UNWINDER_REASON_BYTES] = "";
  cunwind_stepper *stepper = cunwind_library_stepper_create(path, reason);
  snprintf(text, size, "%s", stepper ? stepper->name : reason);
  if (!stepper) return false;
  stepper->flush(stepper);
  stepper->destroy(stepper);
  return true;
}

bool cunwind_test_file_of(const char *library, const char *symbol, char *path, size_t size) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL), *found = handle ? dlsym(handle, symbol) : NULL;
  Dl_info information;
  if (!found || dladdr(found, &information) == 0) return false;
  snprintf(path, size, "%s", information.dli_fname);
  return true;
}
