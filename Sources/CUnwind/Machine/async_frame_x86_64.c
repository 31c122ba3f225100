// Recognizes the prologue of a Swift async function on x86-64.
//
//   endbr64; sub $n,%rsp; bts $60,%rbp    each of the three only sometimes
//   push %rbp; push %r14; lea 8(%rsp),%rbp
//
// Every async function and every part of one begins with these instructions, and no other function does: the extended
// frame of LLVM's X86FrameLowering (X86FI->hasSwiftAsyncContext).

#if defined(__x86_64__)

#include <string.h>

#include "Unwinding/unwind.h"

static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
static const uint8_t mark_frame_pointer[] = {0x48, 0x0f, 0xba, 0xed, 0x3c};
static const uint8_t extended_frame[] = {0x55, 0x41, 0x56, 0x48, 0x8d, 0x6c, 0x24, 0x08};
/// The size of all of them, with the longer form of the subtraction, in bytes.
#define LONGEST_PROLOGUE (sizeof endbr + 7 + sizeof mark_frame_pointer + sizeof extended_frame)

static unsigned skip(const uint8_t *code, const uint8_t *pattern, size_t length) {
  return memcmp(code, pattern, length) == 0 ? (unsigned)length : 0;
}

// Returns the length of the prologue; 0 if it is another one. `*reserved`: the bytes subtracted from the stack pointer
// first.
static unsigned prologue_length(const uint8_t *code, uint64_t *reserved) {
  unsigned at = skip(code, endbr, sizeof endbr);
  *reserved = 0;
  if (memcmp(code + at, "\x48\x83\xec", 3) == 0) {
    *reserved = code[at + 3];
    at += 4;
  } else if (memcmp(code + at, "\x48\x81\xec", 3) == 0) {
    uint32_t size;
    memcpy(&size, code + at + 3, sizeof size);
    *reserved = size;
    at += 7;
  }
  at += skip(code + at, mark_frame_pointer, sizeof mark_frame_pointer);
  unsigned last = skip(code + at, extended_frame, sizeof extended_frame);
  return last == 0 ? 0 : at + last;
}

bool cunwind_async_frame_slots(cunwind_unwinder *unwinder, uint64_t pc, bool is_exact, uint64_t cfa, uint64_t *slot,
                               uint64_t *return_slot) {
  uint64_t start, end, reserved;
  uint8_t code[LONGEST_PROLOGUE];
  if (!cunwind_function_at(unwinder, is_exact ? pc : pc - 1, &start, &end)) return false;
  memset(code, 0, sizeof code);
  size_t available = end - start < sizeof code ? (size_t)(end - start) : sizeof code;
  if (!cunwind_page_cache_read(unwinder->pages, start, code, available)) return false;
  unsigned length = prologue_length(code, &reserved);
  // Inside the prologue, the context is not stored yet.
  if (length == 0 || pc < start + length) return false;
  *return_slot = cfa - 8;
  *slot = cfa - 24 - reserved;
  return true;
}

#endif
