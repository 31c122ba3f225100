#include "common.h"
NOINLINE void called_from_jit_nap(void) {
  nap(600);
  sink++;
}
NOINLINE void run_script_framed(void (*f)(void)) {
  static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
  uint8_t *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(p + 64, code, sizeof code);
  ((void (*)(void (*)(void)))(p + 64))(f);
  sink++;
}
void framed_nap(void) {
  run_script_framed(called_from_jit_nap);
  sink++;
}
NOINLINE static void hot_loop_in_jit(uint64_t until) {
  static const uint8_t loop[] = {0x55, 0x48, 0x89, 0xe5, 0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20,
                                 0x48, 0x09, 0xd0, 0x48, 0x39, 0xf8, 0x72, 0xf2, 0x5d, 0xc3};
  uint8_t *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(p + 64, loop, sizeof loop);
  ((void (*)(uint64_t))(p + 64))(until);
  sink++;
}
NOINLINE void evaluate_regex_jit(void) {
  uint32_t l, h;
  uint64_t t = now_ns();
  __asm__ volatile("rdtsc" : "=a"(l), "=d"(h));
  uint64_t a = (uint64_t)h << 32 | l;
  nap(50);
  __asm__ volatile("rdtsc" : "=a"(l), "=d"(h));
  uint64_t b = (uint64_t)h << 32 | l;
  uint64_t per = (b - a) / ((now_ns() - t) / 1000000);
  hot_loop_in_jit(b + per * 600);
  sink++;
}
void leaf(void) {
  evaluate_regex_jit();
  sink++;
}
