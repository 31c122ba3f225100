// Infers the return address of a function that keeps it in LR alone, where LR is not known: it follows the only call of
// that function in its image.
//
// From glibc 2.41 on, every call that can be cancelled is made by __syscall_cancel_arch, which saves nothing, and /proc
// shows SP and PC of a thread that waits there, and not LR. But only one instruction of libc calls it.

#if defined(__aarch64__)

#include "Unwinding/unwind.h"

/// The instructions that are read at a time.
#define CHUNK_INSTRUCTIONS 1024u
/// The most bytes of code that are searched. glibc's libc has 1.5 MiB.
#define SEARCHED_BYTES (4u << 20)

static bool is_call(uint32_t code) {
  return (code & 0xfc000000u) == 0x94000000u || (code & 0xfffffc1fu) == 0xd63f0000u ||
         (code & 0xfefff800u) == 0xd63f0800u;
}

// Returns the address after the only call of the function in its image's code; 0 if there is none, or another one, or a
// jump from elsewhere.
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
      if (!is_call(code[index]) || target != start || found != 0) return 0;
      found = place + sizeof *code;
    }
  }
  return found;
}

// Returns whether the function has called nothing on its way to `pc`, which would have changed LR.
static bool is_leaf(cunwind_unwinder *unwinder, uint64_t start, uint64_t pc) {
  for (uint64_t at = start; at < pc; at += sizeof(uint32_t)) {
    uint32_t code;
    if (!cunwind_page_cache_read(unwinder->pages, at, &code, sizeof code) || is_call(code)) return false;
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
