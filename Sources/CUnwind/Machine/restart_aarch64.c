// Restarts a system call that a stop has interrupted, on aarch64.
//
// The result has overwritten x0, the call's first argument, and a tracer cannot read the kernel's copy (orig_x0). But
// glibc's wrappers load x0 just before the call from a register that the call preserves: "mov x0, x21; …; svc #0". So
// this code takes the argument from that register, if no jump leads in between. semtimedop(3) and syscall(3) have no
// such register: their call returns EINTR.
//
// A stop at the end of a call looks like a stop at the end of sigreturn(2) after a handler that has interrupted the
// call. Then EINTR belongs to the handler, and the program may rely on it. So no call is restarted if the program has a
// handler that may return. Such a program gets EINTR from its handlers anyway.

#if defined(__aarch64__)

#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "Memory/guarded_memory.h"
#include "Methods/restarted_calls.h"
#include "System/raw_system_call.h"

#define FILE_BYTES 4096
/// The most instructions before the call that are searched for the load of its first argument (glibc 2.36: at most 7).
#define LOADING_INSTRUCTIONS 16
/// The number of instructions before and after the call that are searched for jumps (glibc's wrappers: fewer than 80).
#define SEARCHED_INSTRUCTIONS 128

/// Signals whose handlers do not count: signals that end a program, and those that glibc uses for cancellation and
/// setuid(2).
static const unsigned left_out[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS, 32, 33};

// Reads the status file of a thread and appends a 0. `text` has FILE_BYTES.
CUNWIND_BARE static bool read_status(pid_t tid, char *text) {
  char path[48], digits[12];
  unsigned length = 0, count = 0;
  for (const char *from = "/proc/"; *from; from++) path[length++] = *from;
  for (unsigned rest = (unsigned)tid; rest > 0; rest /= 10) digits[count++] = (char)('0' + rest % 10);
  while (count > 0) path[length++] = digits[--count];
  for (const char *from = "/status"; *from; from++) path[length++] = *from;
  path[length] = 0;
  long file = cunwind_raw(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
  if (file < 0) return false;
  long got = cunwind_raw(SYS_read, file, (long)text, FILE_BYTES - 1, 0, 0, 0);
  cunwind_raw(SYS_close, file, 0, 0, 0, 0, 0);
  text[got > 0 ? got : 0] = 0;
  return got > 0;
}

// Returns whether the program has a handler that may return to interrupted code: one for a signal that counts.
CUNWIND_BARE static bool has_handlers(pid_t tid) {
  static const char label[] = "\nSigCgt:\t";
  char text[FILE_BYTES];
  if (!read_status(tid, text)) return true;
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

/// The code around a call.
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

CUNWIND_BARE static uint64_t target_of(uint64_t address, uint32_t code, unsigned shift, unsigned bits) {
  uint64_t count = (uint64_t)(code >> shift) << (64 - bits);
  return address + (uint64_t)((int64_t)count >> (64 - bits)) * 4;
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
  enum { SVC = 0xd4000001, SVC_BYTES = 4 };
  uint64_t call = registers->pc - SVC_BYTES;
  if ((long)registers->regs[0] != -EINTR || !cunwind_may_be_interrupted((long)registers->regs[8])) return;
  code_window window;
  read_code(&window, call);
  if (instruction(&window, call) != SVC || cunwind_has_pending_signal(tid) || has_handlers(tid)) return;
  unsigned source = source_of_first_argument(&window, call);
  if (source == 0) return;
  cunwind_ptrace_registers restarted = *registers;
  restarted.regs[0] = registers->regs[source];
  restarted.pc = call;
  struct iovec argument;
  argument.iov_base = &restarted;
  argument.iov_len = sizeof restarted;
  // If this fails, the call returns EINTR, as with any other monitor.
  cunwind_raw(SYS_ptrace, PTRACE_SETREGSET, tid, NT_PRSTATUS, (long)&argument, 0, 0);
}

#endif
