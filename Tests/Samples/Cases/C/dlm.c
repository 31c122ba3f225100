#include <dlfcn.h>

#include "common.h"
static void enter(const char *name) {
  void *h = dlmopen(LM_ID_NEWLM, getenv("BH_INNER"), RTLD_NOW);
  if (!h) {
    printf("dlmopen %s\n", dlerror());
    return;
  }
  void (*f)(void) = (void (*)(void))dlsym(h, name);
  f();
  sink++;
}
NOINLINE void call_in_namespace_spin(void) {
  enter("spin");
  sink++;
}
NOINLINE void call_in_namespace_nap(void) {
  enter("sleepy");
  sink++;
}
void ns_spin(void) {
  call_in_namespace_spin();
  sink++;
}
void ns_sleepy(void) {
  call_in_namespace_nap();
  sink++;
}
