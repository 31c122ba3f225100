// Recognizes calls and signal returns in aarch64 machine code (Arm ARM, C4.1: branches; C6.2: BL, BLR).

#if defined(__aarch64__)

#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "Machine/registers.h"
#include "Memory/guarded_memory.h"
#include "Methods/stop_helper.h"
#include "System/raw_system_call.h"
#include "Unwinding/unwind.h"

/// svc #0: it makes a system call, whose number is in x8.
#define SVC 0xd4000001u

const uint8_t cunwind_argument_registers[6] = {0, 1, 2, 3, 4, 5};

// Pointer authentication puts a signature into the bits above the address (bit 55 tells user from kernel space). User
// addresses have 48 bits unless an mmap hint asked for more (Documentation/arch/arm64/memory.rst).
uint64_t cunwind_strip(uint64_t address) { return address & 0x0000ffffffffffffull; }

// The target of a jump or a call, from a signed count of instructions with so many bits.
CUNWIND_BARE static uint64_t target_of(uint64_t address, uint32_t code, unsigned shift, unsigned bits) {
  uint64_t count = (uint64_t)(code >> shift) << (64 - bits);
  return address + (uint64_t)((int64_t)count >> (64 - bits)) * 4;
}

bool cunwind_is_call(uint32_t code) {
  return (code & 0xfc000000u) == 0x94000000u ||  // BL
         (code & 0xfffffc1fu) == 0xd63f0000u ||  // BLR
         (code & 0xfefff800u) == 0xd63f0800u;    // BLRAA, BLRAB, and with zero modifier
}

bool cunwind_follows_call(cunwind_unwinder *unwinder, uint64_t address, uint64_t *target) {
  uint32_t code;
  if (target) *target = 0;
  if (address % 4 != 0 || !cunwind_module_of_code(unwinder->modules, address - 4)) return false;
  if (!cunwind_page_cache_read(unwinder->pages, address - 4, &code, sizeof code)) return false;
  if (target && (code & 0xfc000000u) == 0x94000000u) *target = target_of(address - 4, code, 0, 26);
  return cunwind_is_call(code);
}

bool cunwind_follows_call_outside(const cunwind_unwinder *unwinder, uint64_t address) {
  uint32_t code;
  return address % 4 == 0 && address >= CUNWIND_PAGE_BYTES && !cunwind_module_at(unwinder->modules, address - 4) &&
         cunwind_guarded_read_all(address - sizeof code, &code, sizeof code) && cunwind_is_call(code);
}

// A stub of the procedure linkage table: "adrp x16, page; ldr x17, [x16, #offset]; …; br x17", with or without bti.
uint64_t cunwind_resolve_stub(cunwind_unwinder *unwinder, uint64_t target) {
  uint32_t code[3];
  if (target == 0 || !cunwind_module_of_code(unwinder->modules, target) ||
      !cunwind_page_cache_read(unwinder->pages, target, code, sizeof code))
    return target;
  unsigned at = code[0] == 0xd503245fu ? 1 : 0;
  uint32_t page = code[at], load = code[at + 1];
  if ((page & 0x9f00001fu) != 0x90000010u || (load & 0xffc003ffu) != 0xf9400211u) return target;
  uint64_t pages = (uint64_t)((int64_t)((uint64_t)(page >> 5 & 0x7ffff) << 45) >> 43) | (page >> 29 & 3);
  // Not from the cache: the linker writes the slot.
  uint64_t slot = ((target + at * 4) & ~0xfffull) + (pages << 12) + (load >> 10 & 0xfff) * 8ull, resolved;
  return cunwind_guarded_read_all(slot, &resolved, sizeof resolved) ? cunwind_strip(resolved) : target;
}

// The vDSO's __kernel_rt_sigreturn, and every C library's own: "mov x8, #139; svc #0".
bool cunwind_is_signal_return(cunwind_unwinder *unwinder, uint64_t pc) {
  static const uint32_t restorer[] = {0xd2801168u, SVC};
  uint32_t code[2];
  return cunwind_module_of_code(unwinder->modules, pc) &&
         cunwind_page_cache_read(unwinder->pages, pc, code, sizeof code) && memcmp(code, restorer, sizeof code) == 0;
}

// struct rt_sigframe (arch/arm64/kernel/signal.c): siginfo, then ucontext, from SP up.
cunwind_step cunwind_step_out_of_signal(cunwind_unwinder *unwinder, const cunwind_registers *from,
                                        cunwind_registers *to) {
  uint64_t saved[33];  // struct sigcontext: fault_address comes before; regs[31], sp, pc.
  uint64_t at = from->value[CUNWIND_SP] + sizeof(siginfo_t) + offsetof(ucontext_t, uc_mcontext.regs);
  if (!cunwind_read(unwinder, at, saved, sizeof saved)) return CUNWIND_STEP_NO_MEMORY;
  to->known = 0;
  for (int number = 0; number < CUNWIND_REGISTER_COUNT; number++) cunwind_set_register(to, number, saved[number]);
  return CUNWIND_STEP_OK;
}

const uint8_t cunwind_kept_registers[CUNWIND_KEPT_COUNT] = {CUNWIND_FP, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28};

// ---- Registers ------------------------------------------------------------------------------------------------------
// `make test-aarch64` runs the aarch64 files under Linux 6.1 in qemu-system-aarch64.

void cunwind_registers_from_ptrace(cunwind_registers *to, const cunwind_ptrace_registers *from) {
  to->known = 0;
  for (int number = 0; number <= CUNWIND_LR; number++) cunwind_set_register(to, number, from->regs[number]);
  cunwind_set_register(to, CUNWIND_SP, from->sp);
  // A stop meets a blocked thread before its call's instruction, which is run again (do_signal). /proc shows the next.
  uint32_t code;
  bool is_at_call = cunwind_guarded_read_all(from->pc, &code, sizeof code) && code == SVC;
  cunwind_set_register(to, CUNWIND_PC, from->pc + (is_at_call ? sizeof code : 0));
}

CUNWIND_BARE void cunwind_registers_from_context(cunwind_registers *to, const ucontext_t *from) {
  for (int number = 0; number <= CUNWIND_LR; number++) to->value[number] = from->uc_mcontext.regs[number];
  to->value[CUNWIND_SP] = from->uc_mcontext.sp;
  to->value[CUNWIND_PC] = from->uc_mcontext.pc;
  to->known = (1ull << CUNWIND_REGISTER_COUNT) - 1;
}

// ---- Async frames ---------------------------------------------------------------------------------------------------
// The prologue of a Swift async function on aarch64:
//   orr x29, x29, #1<<60                 only sometimes
//   sub sp, sp, #n; stp x29, x30, [sp, #s + 8]; …; str x22, [sp, #s]; add x29, sp, #s + 8
//
// The extended frame of LLVM's AArch64FrameLowering: x22 is the async context, stored below the frame pointer.

/// The most instructions in which the prologue saves registers. There are ten pairs of them.
#define PROLOGUE_INSTRUCTIONS 14u

bool cunwind_async_frame_slots(cunwind_unwinder *unwinder, uint64_t pc, bool is_exact, uint64_t cfa, uint64_t *slot,
                               uint64_t *return_slot) {
  uint64_t start, end, reserved = 0, context = UINT64_MAX;
  uint32_t code[PROLOGUE_INSTRUCTIONS];
  if (!cunwind_function_at(unwinder, is_exact ? pc : pc - 4, &start, &end)) return false;
  unsigned count = end - start < sizeof code ? (unsigned)((end - start) / sizeof *code) : PROLOGUE_INSTRUCTIONS;
  if (!cunwind_page_cache_read(unwinder->pages, start, code, count * sizeof *code)) return false;
  for (unsigned index = 0; index < count; index++) {
    uint64_t immediate = (code[index] >> 10) & 0xfff;
    if (reserved == 0 && (code[index] & 0xffc003ffu) == 0xd10003ffu) reserved = immediate;  // sub sp, sp, #
    else if ((code[index] & 0xffc003ffu) == 0xf90003f6u) context = immediate * 8;           // str x22, [sp, #]
    else if ((code[index] & 0xffc003ffu) == 0x910003fdu) {                                  // add x29, sp, #
      // Before this instruction, the context may not be stored yet.
      if (context == UINT64_MAX || immediate != context + 8 || pc <= start + index * sizeof *code) return false;
      *slot = cfa - reserved + context;
      *return_slot = *slot + 16;
      return true;
    }
  }
  return false;
}

// ---- Restarted calls ------------------------------------------------------------------------------------------------
// The result has overwritten x0, the call's first argument, and a tracer cannot read the kernel's copy (orig_x0). But
// glibc's wrappers load x0 just before the call from a register that the call preserves: "mov x0, x21; …; svc #0". So
// this code takes the argument from that register, if no jump leads in between. semtimedop(3) and syscall(3) have no
// such register: their call returns EINTR.
//
// A stop at the end of a call looks like a stop at the end of sigreturn(2) after a handler that has interrupted the
// call. Then EINTR belongs to the handler, and the program may rely on it. So no call is restarted if the program has a
// handler that may return. Such a program gets EINTR from its handlers anyway.

#define FILE_BYTES 4096
/// The most instructions before the call that are searched for the load of its first argument (glibc 2.36: at most 7).
#define LOADING_INSTRUCTIONS 16
/// The number of instructions before and after the call that are searched for jumps (glibc's wrappers: fewer than 80).
#define SEARCHED_INSTRUCTIONS 128

/// Signals whose handlers do not count: those that end a program, and glibc's for cancellation and setuid(2).
static const unsigned left_out[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS, 32, 33};

// Returns whether the program has a handler that may return to interrupted code: one for a signal that counts.
CUNWIND_BARE static bool has_handlers(pid_t tid) {
  static const char label[] = "\nSigCgt:\t";
  char text[FILE_BYTES], path[CUNWIND_NUMBERED_PATH_BYTES];
  cunwind_number_path(path, "/proc/", (uint64_t)tid, "/status");
  if (cunwind_read_text(path, text, sizeof text) <= 0) return true;
  for (const char *at = text; *at; at++) {
    unsigned length = 0;
    while (label[length] && at[length] == label[length]) length++;
    if (label[length]) continue;
    uint64_t caught = 0;
    for (at += length; *at && *at != '\n'; at++) {
      caught = caught << 4 | (uint64_t)(*at >= 'a' ? *at - 'a' + 10 : *at - '0');
    }
    for (unsigned index = 0; index < sizeof left_out / sizeof *left_out; index++) {
      caught &= ~(1ull << (left_out[index] - 1));
    }
    return caught != 0;
  }
  return true;
}

typedef struct code_window {
  uint64_t start;
  uint64_t count;
  uint32_t instructions[2 * SEARCHED_INSTRUCTIONS];
} code_window;

// Makes one read, so that the thread stays stopped for only a few microseconds more.
CUNWIND_BARE static void read_code(code_window *window, uint64_t call) {
  window->start = call - SEARCHED_INSTRUCTIONS * 4;
  window->count = cunwind_guarded_read(window->start, window->instructions, sizeof window->instructions) / 4;
  if (window->count > 0) return;
  // The previous page is not readable: begin at this one.
  window->start = call & ~(uint64_t)(CUNWIND_PAGE_BYTES - 1);
  window->count = cunwind_guarded_read(window->start, window->instructions, sizeof window->instructions) / 4;
}

// Returns the instruction at `address`; 0 if it is outside the window. No instruction is 0.
CUNWIND_BARE static uint32_t instruction(const code_window *window, uint64_t address) {
  uint64_t index = (address - window->start) / 4;
  return address >= window->start && index < window->count ? window->instructions[index] : 0;
}

// Returns the target of a jump; 0 if the instruction is not a jump, or jumps to a register.
CUNWIND_BARE static uint64_t jump_target(uint64_t address, uint32_t code) {
  if ((code & 0xfc000000u) == 0x14000000u) return target_of(address, code, 0, 26);  // B
  if ((code & 0xff000000u) == 0x54000000u) return target_of(address, code, 5, 19);  // B.cond
  if ((code & 0x7e000000u) == 0x34000000u) return target_of(address, code, 5, 19);  // CBZ, CBNZ
  if ((code & 0x7e000000u) == 0x36000000u) return target_of(address, code, 5, 14);  // TBZ, TBNZ
  return 0;
}

CUNWIND_BARE static bool is_jumped_into(const code_window *window, uint64_t low, uint64_t high) {
  for (uint64_t index = 0; index < window->count; index++) {
    uint64_t target = jump_target(window->start + index * 4, window->instructions[index]);
    if (target > low && target <= high) return true;
  }
  return false;
}

// Returns the register from which x0 was loaded before the call at `call`: one of x19...x28, which the code in between
// must not write. 0: not found. That code may contain only instructions that load other arguments and the call's
// number: MOV of a register, and MOVZ.
CUNWIND_BARE static unsigned source_of_first_argument(const code_window *window, uint64_t call) {
  for (unsigned count = 1; count <= LOADING_INSTRUCTIONS; count++) {
    uint64_t address = call - count * 4;
    uint32_t code = instruction(window, address);
    bool is_move = (code & 0x7fe0ffe0u) == 0x2a0003e0u, is_constant = (code & 0x7f800000u) == 0x52800000u;
    unsigned to = code & 31, from = (code >> 16) & 31;
    if ((!is_move && !is_constant) || to >= 19) return 0;
    if (to != 0) continue;
    bool is_64_bits = (code & 0x80000000u) != 0;
    return is_move && is_64_bits && from >= 19 && from <= 28 && !is_jumped_into(window, address, call) ? from : 0;
  }
  return 0;
}

CUNWIND_BARE void cunwind_restart_interrupted_call(pid_t tid, const cunwind_ptrace_registers *registers) {
  uint64_t call = registers->pc - sizeof(uint32_t);
  if ((long)registers->regs[0] != -EINTR || !cunwind_may_be_interrupted((long)registers->regs[8])) return;
  code_window window;
  read_code(&window, call);
  if (instruction(&window, call) != SVC ||
      cunwind_has_pending_signal(tid, (long)registers->regs[8], registers->regs[4], registers->regs[5]) ||
      has_handlers(tid))
    return;
  unsigned source = source_of_first_argument(&window, call);
  if (source == 0) return;
  cunwind_ptrace_registers restarted = *registers;
  restarted.regs[0] = registers->regs[source];
  restarted.pc = call;
  cunwind_set_stopped_registers(tid, &restarted);
}

#endif
