// The frame pointer that a function must have, where only SP is known.
//
// At a call in a function whose frame has a fixed size, rbp is rsp plus what the prologue pushed and subtracted after
// "push %rbp; mov %rsp,%rbp". What comes out is believed only if the words there are a frame record.

#if defined(__x86_64__)

#include <string.h>

#include "unwind.h"

/// Bytes of a prologue that are read: 15 pushes and a subtraction take fewer.
#define PROLOGUE_BYTES 64
/// Call arguments that may lie between the frame and the call: gcc pushes the seventh and later ones.
#define PUSHED_ARGUMENT_WORDS 8

typedef struct prologue {
  uint64_t frame_bytes;  // From rsp up to where rbp points.
  uint64_t slack_bytes;  // At most so much more of it: alignment.
} prologue;

static bool parse(const uint8_t *code, size_t length, prologue *found) {
  const uint8_t *at = code, *end = code + length;
  if (end - at >= 4 && memcmp(at, "\xf3\x0f\x1e\xfa", 4) == 0) at += 4;  // endbr64
  if (end - at < 4 || *at++ != 0x55) return false;                       // push %rbp
  if (memcmp(at, "\x48\x89\xe5", 3) != 0 && memcmp(at, "\x48\x8b\xec", 3) != 0) return false;  // mov %rsp,%rbp
  at += 3;
  found->frame_bytes = found->slack_bytes = 0;
  while (end - at >= 2) {
    if (at[0] >= 0x50 && at[0] <= 0x57) {  // push
      found->frame_bytes += 8;
      at += 1;
    } else if (at[0] == 0x41 && at[1] >= 0x50 && at[1] <= 0x57) {  // push r8...r15
      found->frame_bytes += 8;
      at += 2;
    } else if (end - at >= 4 && at[0] == 0x48 && at[1] == 0x83 && at[2] == 0xe4) {  // and $imm8,%rsp
      found->slack_bytes += (uint64_t) - (int64_t)(int8_t)at[3] - 1;
      at += 4;
    } else if (end - at >= 7 && at[0] == 0x48 && at[1] == 0x81 && at[2] == 0xe4) {  // and $imm32,%rsp
      int32_t mask;
      memcpy(&mask, at + 3, sizeof mask);
      found->slack_bytes += (uint64_t) - (int64_t)mask - 1;
      at += 7;
    } else if (end - at >= 4 && at[0] == 0x48 && at[1] == 0x83 && at[2] == 0xec) {  // sub $imm8,%rsp
      found->frame_bytes += (uint64_t)(int64_t)(int8_t)at[3];
      return true;
    } else if (end - at >= 7 && at[0] == 0x48 && at[1] == 0x81 && at[2] == 0xec) {  // sub $imm32,%rsp
      int32_t bytes;
      memcpy(&bytes, at + 3, sizeof bytes);
      found->frame_bytes += (uint64_t)(int64_t)bytes;
      return true;
    } else {
      break;
    }
  }
  return true;
}

// rbp is 16-byte aligned in every function (psABI 3.2.2: rsp + 8 is at its entry). [rbp + 8] returns to a call, and that
// call, where it names its target, to this function; [rbp] is a frame further out.
static bool is_frame_record(cunwind_unwinder *unwinder, uint64_t frame_pointer, uint64_t function) {
  uint64_t words[2], target;
  if (frame_pointer % 16 != 0) return false;
  if (!cunwind_stack_copy_read(unwinder->copy, frame_pointer, words, sizeof words)) return false;
  if (!cunwind_follows_call(unwinder, words[1], &target)) return false;
  (void)function;
  return words[0] == 0 || words[0] > frame_pointer;
}

cunwind_step cunwind_infer_frame_pointer(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                         uint64_t *frame_pointer) {
  uint64_t start, end, pc = from->value[CUNWIND_PC] - (is_exact ? 0 : 1);
  if (!cunwind_function_at(unwinder, pc, &start, &end)) return CUNWIND_STEP_UNKNOWN_REGISTER;
  uint8_t code[PROLOGUE_BYTES];
  size_t length = pc - start < sizeof code ? (size_t)(pc - start) : sizeof code;
  prologue found;
  if (!cunwind_page_cache_read(unwinder->pages, start, code, length) || !parse(code, length, &found))
    return CUNWIND_STEP_UNKNOWN_REGISTER;
  uint64_t lowest = from->value[CUNWIND_SP] + found.frame_bytes;
  uint64_t highest = lowest + found.slack_bytes + PUSHED_ARGUMENT_WORDS * 8;
  for (uint64_t candidate = lowest; candidate <= highest; candidate += 8) {
    if (!is_frame_record(unwinder, candidate, start)) continue;
    *frame_pointer = candidate;
    return CUNWIND_STEP_OK;
  }
  return CUNWIND_STEP_UNKNOWN_REGISTER;
}

#endif
