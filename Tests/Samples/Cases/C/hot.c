#include "common.h"
#ifndef NAME
#define NAME render_shadows
#endif
NOINLINE void NAME(void) {
  SPIN(600);
  sink++;
}
void run(void) {
  NAME();
  sink++;
}
