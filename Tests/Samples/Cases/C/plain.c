#include "common.h"
#ifndef INNERMOST
#define INNERMOST innermost_spin
#endif
NOINLINE void INNERMOST(void) {
  SPIN(600);
  sink++;
}
NOINLINE void middle_spin(void) {
  INNERMOST();
  sink++;
}
void spin(void) {
  middle_spin();
  sink++;
}
NOINLINE void innermost_nap(void) {
  nap(600);
  sink++;
}
NOINLINE void middle_nap(void) {
  innermost_nap();
  sink++;
}
void sleepy(void) {
  middle_nap();
  sink++;
}
void noop(void) { sink++; }
