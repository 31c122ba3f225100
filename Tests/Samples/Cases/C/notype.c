#include <x86intrin.h>

#include "common.h"
// As nasm writes a function without `:function`: no type, no size, no CFI; a leaf with a frame.
__asm__(
    "    .text\n"
    "    .globl mix_samples\n"
    "mix_samples:\n"
    "    push %rbx\n"
    "    sub $64, %rsp\n"
    "1:  rdtsc\n"
    "    shl $32, %rdx\n"
    "    or %rdx, %rax\n"
    "    cmp %rdi, %rax\n"
    "    jb 1b\n"
    "    add $64, %rsp\n"
    "    pop %rbx\n"
    "    ret\n");
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
