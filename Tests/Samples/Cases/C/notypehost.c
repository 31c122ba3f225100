#include <x86intrin.h>

#include "common.h"
void mix_samples(uint64_t until);
NOINLINE void play_sound(void) {
  uint64_t a = __rdtsc(), t = now_ns();
  while (now_ns() < t + 20000000) {
  }
  uint64_t per_ms = (__rdtsc() - a) / ((now_ns() - t) / 1000000);
  mix_samples(__rdtsc() + per_ms * 600);
  sink++;
}
void run(void) {
  play_sound();
  sink++;
}
