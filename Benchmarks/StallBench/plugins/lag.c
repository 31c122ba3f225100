// A logger of the loop's lag, as server frameworks have: after a turn that was too long it writes how long. It has no stack.
#define _GNU_SOURCE
#include "plugin.h"

void plugin_start(unsigned milliseconds, const char *folder) { open_output(milliseconds, folder); }

void plugin_begin_turn(void) { turn_began = now(); }

void plugin_end_turn(void) {
  double end = now();
  if (end - turn_began < threshold) return;
  write_line("stall", end, turn_began);
  write_line("end", end, end - turn_began);
}
