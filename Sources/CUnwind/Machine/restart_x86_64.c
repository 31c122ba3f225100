// Restarts a system call that a stop has interrupted, on x86-64: orig_rax has the call's number, and the result has
// overwritten no argument.

#if defined(__x86_64__)

#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "Methods/restarted_calls.h"
#include "System/raw_system_call.h"

#define SYSCALL_INSTRUCTION_BYTES 2

CUNWIND_BARE void cunwind_restart_interrupted_call(pid_t tid, const cunwind_ptrace_registers *registers) {
  if ((long)registers->orig_rax < 0 || (long)registers->rax != -EINTR ||
      !cunwind_may_be_interrupted((long)registers->orig_rax))
    return;
  if (cunwind_has_pending_signal(tid)) return;
  cunwind_ptrace_registers restarted = *registers;
  restarted.rax = registers->orig_rax;
  restarted.rip -= SYSCALL_INSTRUCTION_BYTES;
  struct iovec argument;
  argument.iov_base = &restarted;
  argument.iov_len = sizeof restarted;
  // If this fails, the call returns EINTR, as with any other monitor.
  cunwind_raw(SYS_ptrace, PTRACE_SETREGSET, tid, NT_PRSTATUS, (long)&argument, 0, 0);
}

#endif
