// System calls that a stop interrupts.

#ifndef CUNWIND_RESTARTED_CALLS_H
#define CUNWIND_RESTARTED_CALLS_H

#include <stdbool.h>
#include <sys/types.h>

#include "Machine/registers.h"

#pragma GCC visibility push(hidden)

/// Makes the thread begin its system call again, if the stop alone would make the call return EINTR. For the stop
/// helper, while PTRACE_INTERRUPT has stopped `tid` with `registers`. Makes only raw system calls, allocates nothing,
/// and cannot block. Async-signal-safe: yes.
void cunwind_restart_interrupted_call(pid_t tid, const cunwind_ptrace_registers *registers);

/// Returns whether a stop can make the system call `number` return EINTR. Async-signal-safe: yes.
bool cunwind_may_be_interrupted(long number);

/// Returns whether the stopped thread has a pending signal of the app: EINTR then belongs to that signal, and stays.
/// Async-signal-safe: yes.
bool cunwind_has_pending_signal(pid_t tid);

#pragma GCC visibility pop

#endif
