// Notes where the run loop calls out from: return addresses, which Swift does not show.

#include <stdint.h>

#include "CLinux.h"

void clinux_note_source(void *note) { *(uint64_t *)note = (uint64_t)(uintptr_t)__builtin_return_address(0); }

void clinux_note_timer(const void *timer, void *note) {
  (void)timer;
  *(uint64_t *)note = (uint64_t)(uintptr_t)__builtin_return_address(0);
}

void clinux_note_observer(const void *observer, unsigned long activity, void *note) {
  (void)observer, (void)activity;
  *(uint64_t *)note = (uint64_t)(uintptr_t)__builtin_return_address(0);
}

// A block's layout (Block-ABI-Apple, "High Level"). As a global one it is neither copied nor freed. Swift would put a
// function of its own between the run loop and a closure.
enum { BLOCK_IS_GLOBAL = 1 << 28 };

typedef struct block {
  void *isa;
  int flags, reserved;
  void (*invoke)(struct block *block);
  const void *descriptor;
  uint64_t address;
} block;

// Weak: a program without CoreFoundation links this file, too.
extern void *_NSConcreteGlobalBlock[] __attribute__((weak));
extern void CFRunLoopPerformBlock(void *loop, const void *mode, const void *block) __attribute__((weak));

static void note_block(block *noting) { noting->address = (uint64_t)(uintptr_t)__builtin_return_address(0); }

const uint64_t *clinux_perform_noting_block(void *loop, const void *mode) {
  static const uintptr_t descriptor[2] = {0, sizeof(block)};
  static block noting = {.flags = BLOCK_IS_GLOBAL, .invoke = note_block, .descriptor = descriptor};
  if (CFRunLoopPerformBlock && _NSConcreteGlobalBlock) {
    noting.isa = _NSConcreteGlobalBlock;
    CFRunLoopPerformBlock(loop, mode, &noting);
  }
  return &noting.address;
}
