#include "common.h"
NOINLINE void innermost_spin(void) {
  SPIN(600);
  sink++;
}
NOINLINE void middle_spin(void) {
  innermost_spin();
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
