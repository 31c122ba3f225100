// Computes a function's frame pointer where only SP is known. On aarch64 "add x29, sp, #n" sets it, after the record
// (x29, x30) has been stored there. It fails if SP has moved by an amount that is not in the code.

#if defined(__aarch64__)

#include "Unwinding/unwind.h"

/// The most bytes of code that are followed.
#define FOLLOWED_BYTES 65536u

typedef struct distance {
  bool is_set;
  bool is_fixed;
  int64_t bytes;  // x29 - sp.
  int64_t body;   // The same after the prologue: the value that applies again after a return.
  bool in_prologue;
} distance;

// The amount by which a pre- or post-indexed store or load moves SP, in bytes.
static bool moves_stack_by_index(uint32_t code, int64_t *amount) {
  bool is_on_sp = ((code >> 5) & 31) == 31;
  // STP/LDP of 64-bit registers, pre- (bits 25...23 = 011) or post-indexed (001): a signed 7-bit count of 8 bytes.
  if (is_on_sp && ((code & 0xff800000u) == 0xa9800000u || (code & 0xff800000u) == 0xa8800000u ||
                   (code & 0xffc00000u) == 0xa9c00000u || (code & 0xffc00000u) == 0xa8c00000u)) {
    *amount = ((int64_t)((uint64_t)((code >> 15) & 0x7f) << 57) >> 57) * 8;
    return true;
  }
  // STR/LDR of a 64-bit register, pre- or post-indexed: a signed 9-bit count of bytes.
  if (is_on_sp && (code & 0xffa00400u) == 0xf8000400u) {
    *amount = (int64_t)((uint64_t)((code >> 12) & 0x1ff) << 55) >> 55;
    return true;
  }
  return false;
}

static void follow_one(uint32_t code, distance *now) {
  unsigned to = code & 31, from = (code >> 5) & 31;
  int64_t amount = (int64_t)((code >> 10) & 0xfff) << ((code >> 22) & 1 ? 12 : 0);
  bool is_add = (code & 0xff800000u) == 0x91000000u, is_sub = (code & 0xff800000u) == 0xd1000000u;
  if (is_add && to == 29 && from == 31) {
    *now = (distance){.is_set = true, .is_fixed = true, .in_prologue = true, .bytes = amount, .body = amount};
  } else if ((is_add || is_sub) && to == 31 && from == 31) {
    now->bytes += is_sub ? amount : -amount;
    if (now->in_prologue) now->body = now->bytes;
  } else if ((is_add || is_sub) && to == 31 && from == 29) {
    now->bytes = is_sub ? amount : -amount;
  } else if (((is_add || is_sub) && to == 31) || (code & 0xffe0001fu) == 0x8b20001fu ||
             (code & 0xffe0001fu) == 0xcb20001fu ||  // ADD, SUB (extended register) to SP: alloca.
             (code & 0xff80001fu) == 0x9200001fu ||  // AND (immediate) to SP: realignment.
             (code & 0xffa0f01fu) == 0x0420501fu) {  // ADDVL, ADDPL, ADDSVL, ADDSPL to SP: vectors on the stack.
    now->is_fixed = false;
  } else if (moves_stack_by_index(code, &amount)) {
    now->bytes -= amount;
    if (now->in_prologue) now->body = now->bytes;
  }
}

static bool is_return_or_jump(uint32_t code) {
  return (code & 0xfc000000u) == 0x14000000u ||  // B
         (code & 0xfffffc1fu) == 0xd61f0000u ||  // BR
         (code & 0xfffff000u) == 0xd65f0000u ||  // RET, RETAA, RETAB
         (code & 0xffe0001fu) == 0xd4200000u;    // BRK
}

cunwind_step cunwind_infer_frame_pointer(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                         uint64_t *frame_pointer) {
  uint64_t start, end, return_address, pc = from->value[CUNWIND_PC];
  if (!cunwind_function_at(unwinder, pc - (is_exact ? 0 : 1), &start, &end)) return CUNWIND_STEP_UNKNOWN_REGISTER;
  if (pc - start > FOLLOWED_BYTES) return CUNWIND_STEP_UNKNOWN_REGISTER;
  distance now = {.is_fixed = true, .in_prologue = true};
  uint64_t grown = 0;  // The last instruction that has moved SP down.
  bool has_called = false;
  for (uint64_t address = start; address < pc; address += 4) {
    uint32_t code;
    if (!cunwind_page_cache_read(unwinder->pages, address, &code, sizeof code)) return CUNWIND_STEP_UNKNOWN_REGISTER;
    int64_t before = now.bytes;
    follow_one(code, &now);
    if (now.bytes > before) grown = address;
    has_called |= cunwind_is_call(code);
    // The loop that touches each page of a large frame (-fstack-clash-protection). B.cond: a signed 19-bit count.
    uint64_t target = address + (uint64_t)((int64_t)((uint64_t)(code >> 5) << 45) >> 43);
    bool is_conditional = (code & 0xff000000u) == 0x54000000u;
    if (is_conditional && !has_called && target <= grown) now.is_fixed = false;
    bool is_branch = is_conditional || (code & 0x7c000000u) == 0x34000000u;
    if (is_return_or_jump(code)) now.bytes = now.body;
    if (now.is_set && (cunwind_is_call(code) || is_branch || is_return_or_jump(code))) now.in_prologue = false;
  }
  if (!now.is_set || !now.is_fixed || now.bytes < 0) return CUNWIND_STEP_UNKNOWN_REGISTER;
  uint64_t candidate = from->value[CUNWIND_SP] + (uint64_t)now.bytes;
  if (!cunwind_stack_copy_read(unwinder->copy, candidate + 8, &return_address, sizeof return_address) ||
      !cunwind_follows_call(unwinder, cunwind_strip(return_address), NULL))
    return CUNWIND_STEP_UNKNOWN_REGISTER;
  *frame_pointer = candidate;
  return CUNWIND_STEP_OK;
}

// ---- The link register ----------------------------------------------------------------------------------------------
// Infers the return address of a function that keeps it in LR alone, where LR is not known: it follows the only call of
// that function in its image.
//
// From glibc 2.41 on, every call that can be cancelled is made by __syscall_cancel_arch, which saves nothing, and /proc
// shows SP and PC of a thread that waits there, and not LR. But only one instruction of libc calls it.

/// The instructions that are read at a time.
#define CHUNK_INSTRUCTIONS 1024u
/// The most bytes of code that are searched. glibc's libc has 1.5 MiB.
#define SEARCHED_BYTES (4u << 20)

// Returns the address after the only call of the function in its image's code; 0: none, another one, or a jump.
static uint64_t only_call(const cunwind_module *module, uint64_t start, uint64_t end) {
  uint32_t code[CHUNK_INSTRUCTIONS];
  uint64_t found = 0;
  if (module->code_high - module->code_low > SEARCHED_BYTES) return 0;
  for (uint64_t at = module->code_low; at < module->code_high; at += sizeof code) {
    uint64_t left = module->code_high - at, size = left < sizeof code ? left : sizeof code;
    uint64_t count = cunwind_guarded_read(at, code, size) / sizeof *code;
    for (uint64_t index = 0; index < count; index++) {
      if ((code[index] & 0x7c000000u) != 0x14000000u) continue;  // B, BL: a signed 26-bit count of instructions.
      uint64_t place = at + index * sizeof *code;
      uint64_t target = place + (uint64_t)((int64_t)((uint64_t)(code[index] & 0x03ffffffu) << 38) >> 36);
      if (target < start || target >= end || (place >= start && place < end)) continue;
      if (!cunwind_is_call(code[index]) || target != start || found != 0) return 0;
      found = place + sizeof *code;
    }
  }
  return found;
}

// Returns whether the function has called nothing on its way to `pc`, which would have changed LR.
static bool is_leaf(cunwind_unwinder *unwinder, uint64_t start, uint64_t pc) {
  for (uint64_t at = start; at < pc; at += sizeof(uint32_t)) {
    uint32_t code;
    if (!cunwind_page_cache_read(unwinder->pages, at, &code, sizeof code) || cunwind_is_call(code)) return false;
  }
  return true;
}

bool cunwind_infer_link(cunwind_unwinder *unwinder, const cunwind_registers *from, uint64_t *link) {
  uint64_t start, end, caller_start, caller_end, target, pc = from->value[CUNWIND_PC];
  const cunwind_module *module = cunwind_module_of_code(unwinder->modules, pc);
  if (!module || !cunwind_function_at(unwinder, pc, &start, &end) || !is_leaf(unwinder, start, pc)) return false;
  // Fibonacci hashing, as in the page cache.
  cunwind_only_call *known = &unwinder->only_calls[((start * 0x9e3779b97f4a7c15ull) >> 32) % CUNWIND_ONLY_CALLS];
  if (known->function != start) {
    *known = (cunwind_only_call){.function = start, .link = only_call(module, start, end)};
  }
  if (known->link == 0) return false;
  // The caller's own return address, where its frame has it, must follow a call of the caller.
  cunwind_registers caller = *from, outer;
  cunwind_set_register(&caller, CUNWIND_PC, known->link);
  if (cunwind_step_by_cfi(unwinder, &caller, false, &outer) != CUNWIND_STEP_OK ||
      !cunwind_follows_call(unwinder, outer.value[CUNWIND_PC], &target) ||
      !cunwind_function_at(unwinder, known->link - 1, &caller_start, &caller_end) ||
      (target != 0 && (target < caller_start || target >= caller_end)))
    return false;
  *link = known->link;
  return true;
}

#endif
