// Recognizes calls and signal returns in x86-64 machine code (Intel SDM volume 2: CALL, JMP; ModR/M and SIB forms).

#if defined(__x86_64__)

#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "Machine/registers.h"
#include "Memory/guarded_memory.h"
#include "Methods/stop_helper.h"
#include "System/raw_system_call.h"
#include "Unwinding/unwind.h"

/// The length of the longest call without prefixes: FF /2 with SIB and a 32-bit displacement.
#define LONGEST_CALL 7

static const uint8_t context_places[CUNWIND_REGISTER_COUNT] = {
    REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
    REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
};
/// rdi, rsi, rdx, r10, r8, r9 (psABI A.2.1).
const uint8_t cunwind_argument_registers[6] = {5, 4, 1, 10, 8, 9};

uint64_t cunwind_strip(uint64_t address) { return address; }

// Returns the length of an indirect call whose opcode byte FF is at `at`; 0 if there is none.
static unsigned indirect_call_length(const uint8_t *at, unsigned available) {
  if (available < 2 || at[0] != 0xff || ((at[1] >> 3) & 7) != 2) return 0;
  unsigned mode = at[1] >> 6, base = at[1] & 7, length = 2;
  if (mode == 3) return length;
  if (base == 4) {
    if (available < 3) return 0;
    length++;
    base = (at[2] & 7) == 5 && mode == 0 ? 5 : 0;  // SIB with base 101 and mode 00: a 32-bit displacement.
  }
  if (mode == 1) return length + 1;
  if (mode == 2 || (mode == 0 && base == 5)) return length + 4;
  return length;
}

// Returns whether code ends with a call: its last `available` bytes are before `end`. `*offset`: that of a direct call.
static bool ends_with_call(const uint8_t *end, unsigned available, int32_t *offset) {
  *offset = 0;
  if (available >= 5 && end[-5] == 0xe8) {
    memcpy(offset, end - 4, sizeof *offset);
    return true;
  }
  for (unsigned length = 2; length <= available; length++) {
    if (indirect_call_length(end - length, length) == length) return true;
  }
  return false;
}

bool cunwind_follows_call(cunwind_unwinder *unwinder, uint64_t address, uint64_t *target) {
  if (target) *target = 0;
  // The call may be the last instruction of its segment, so the byte before `address` must be code.
  const cunwind_module *module = cunwind_module_of_code(unwinder->modules, address - 1);
  if (!module) return false;
  uint8_t code[LONGEST_CALL];
  unsigned available = LONGEST_CALL;
  if (address - module->code_low < available) available = (unsigned)(address - module->code_low);
  uint8_t *end = code + LONGEST_CALL;
  int32_t offset;
  if (!cunwind_page_cache_read(unwinder->pages, address - available, end - available, available) ||
      !ends_with_call(end, available, &offset))
    return false;
  if (target && offset != 0) *target = address + (uint64_t)(int64_t)offset;
  return true;
}

bool cunwind_follows_call_outside(const cunwind_unwinder *unwinder, uint64_t address) {
  uint8_t code[LONGEST_CALL];
  int32_t offset;
  return address >= CUNWIND_PAGE_BYTES && !cunwind_module_at(unwinder->modules, address - 1) &&
         cunwind_guarded_read_all(address - sizeof code, code, sizeof code) &&
         ends_with_call(code + sizeof code, sizeof code, &offset);
}

// A stub of the procedure linkage table, with or without endbr64, mold's "mov $number,%r11d" and bnd: "jmp *slot(%rip)";
// or a function that only jumps to another one.
uint64_t cunwind_resolve_stub(cunwind_unwinder *unwinder, uint64_t target) {
  uint8_t code[17];
  if (target == 0 || !cunwind_module_of_code(unwinder->modules, target)) return target;
  if (!cunwind_page_cache_read(unwinder->pages, target, code, sizeof code)) return target;
  unsigned at = memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0 ? 4 : 0;
  if (code[at] == 0x41 && code[at + 1] == 0xbb) at += 6;
  if (code[at] == 0xf2) at++;
  int32_t offset;
  if (code[at] == 0xe9) {
    memcpy(&offset, code + at + 1, sizeof offset);
    return target + at + 5 + (uint64_t)(int64_t)offset;
  }
  if (code[at] != 0xff || code[at + 1] != 0x25) return target;
  memcpy(&offset, code + at + 2, sizeof offset);
  // Not from the cache: the linker writes the slot.
  uint64_t slot = target + at + 6 + (uint64_t)(int64_t)offset, resolved;
  return cunwind_guarded_read_all(slot, &resolved, sizeof resolved) ? resolved : target;
}

// The restorers of glibc and musl: "mov $15, %rax; syscall" (rt_sigreturn), as gdb and libgcc recognize them.
bool cunwind_is_signal_return(cunwind_unwinder *unwinder, uint64_t pc) {
  static const uint8_t restorer[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
  uint8_t code[sizeof restorer];
  const cunwind_module *module = cunwind_module_of_code(unwinder->modules, pc);
  return module && module->image.high - pc >= sizeof code &&
         cunwind_page_cache_read(unwinder->pages, pc, code, sizeof code) && memcmp(code, restorer, sizeof code) == 0;
}

// struct rt_sigframe (arch/x86/include/asm/sigframe.h): the restorer's address, popped on return, then the ucontext.
cunwind_step cunwind_step_out_of_signal(cunwind_unwinder *unwinder, const cunwind_registers *from,
                                        cunwind_registers *to) {
  uint64_t saved[REG_RIP + 1];
  uint64_t at = from->value[CUNWIND_SP] + offsetof(ucontext_t, uc_mcontext.gregs);
  if (!cunwind_read(unwinder, at, saved, sizeof saved)) return CUNWIND_STEP_NO_MEMORY;
  to->known = 0;
  for (int number = 0; number < CUNWIND_REGISTER_COUNT; number++) {
    cunwind_set_register(to, number, saved[context_places[number]]);
  }
  return CUNWIND_STEP_OK;
}

const uint8_t cunwind_kept_registers[CUNWIND_KEPT_COUNT] = {CUNWIND_FP, 3, 12, 13, 14, 15};

// ---- Registers ------------------------------------------------------------------------------------------------------

void cunwind_registers_from_ptrace(cunwind_registers *to, const cunwind_ptrace_registers *from) {
  const uint64_t values[CUNWIND_REGISTER_COUNT] = {
      from->rax, from->rdx, from->rcx, from->rbx, from->rsi, from->rdi, from->rbp, from->rsp, from->r8,
      from->r9,  from->r10, from->r11, from->r12, from->r13, from->r14, from->r15, from->rip,
  };
  to->known = 0;
  for (int number = 0; number < CUNWIND_REGISTER_COUNT; number++) cunwind_set_register(to, number, values[number]);
}

CUNWIND_BARE void cunwind_registers_from_context(cunwind_registers *to, const ucontext_t *from) {
  for (int number = 0; number < CUNWIND_REGISTER_COUNT; number++) {
    to->value[number] = (uint64_t)from->uc_mcontext.gregs[context_places[number]];
  }
  to->known = (1ull << CUNWIND_REGISTER_COUNT) - 1;
}

// ---- Async frames ---------------------------------------------------------------------------------------------------
// The prologue of a Swift async function on x86-64:
//   endbr64; sub $n,%rsp; bts $60,%rbp    each of the three only sometimes
//   push %rbp; push %r14; lea 8(%rsp),%rbp
//
// Every async function and every part of one begins with these instructions, and no other function does: the extended
// frame of LLVM's X86FrameLowering (X86FI->hasSwiftAsyncContext).

static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
static const uint8_t mark_frame_pointer[] = {0x48, 0x0f, 0xba, 0xed, 0x3c};
static const uint8_t extended_frame[] = {0x55, 0x41, 0x56, 0x48, 0x8d, 0x6c, 0x24, 0x08};
/// The size of all of them, with the longer form of the subtraction, in bytes.
#define LONGEST_PROLOGUE (sizeof endbr + 7 + sizeof mark_frame_pointer + sizeof extended_frame)

static unsigned skip(const uint8_t *code, const uint8_t *pattern, size_t length) {
  return memcmp(code, pattern, length) == 0 ? (unsigned)length : 0;
}

// Returns the length of the prologue; 0 for another one. `*reserved`: the bytes subtracted from the stack pointer.
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

// ---- Restarted calls ------------------------------------------------------------------------------------------------
// On x86-64, orig_rax has the call's number, and the result has overwritten no argument.

#define SYSCALL_INSTRUCTION_BYTES 2

CUNWIND_BARE void cunwind_restart_interrupted_call(pid_t tid, const cunwind_ptrace_registers *registers) {
  if ((long)registers->orig_rax < 0 || (long)registers->rax != -EINTR ||
      !cunwind_may_be_interrupted((long)registers->orig_rax))
    return;
  if (cunwind_has_pending_signal(tid, (long)registers->orig_rax, registers->r8, registers->r9)) return;
  cunwind_ptrace_registers restarted = *registers;
  restarted.rax = registers->orig_rax;
  restarted.rip -= SYSCALL_INSTRUCTION_BYTES;
  cunwind_set_stopped_registers(tid, &restarted);
}

#endif
