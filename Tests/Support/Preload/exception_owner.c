// Preloaded into a program, prints the file whose _Unwind_RaiseException the program's C++ exceptions use, and exits
// before main.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((constructor)) static void print_exception_owner(void) {
  void *function = dlsym(RTLD_DEFAULT, "_Unwind_RaiseException");
  Dl_info info;
  if (!function || !dladdr(function, &info)) _exit(1);
  printf("%s\n", info.dli_fname);
  fflush(stdout);
  _exit(0);
}
