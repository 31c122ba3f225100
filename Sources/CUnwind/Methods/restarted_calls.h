// System calls that a stop interrupts.

#ifndef CUNWIND_RESTARTED_CALLS_H
#define CUNWIND_RESTARTED_CALLS_H

#include <stdbool.h>
#include <sys/types.h>

#include "Machine/registers.h"

#pragma GCC visibility push(hidden)

/// For the stop helper, while `tid` is stopped by PTRACE_INTERRUPT with `registers`: if the stop is about to make a call
/// return EINTR that nothing else interrupts, makes the thread begin the call again. Raw system calls only;
/// allocates nothing, cannot block. Async-signal-safe: yes.
void cunwind_restart_interrupted_call(pid_t tid, const cunwind_ptrace_registers *registers);

/// Whether a stop may make the system call `number` return EINTR. Async-signal-safe: yes.
bool cunwind_may_be_interrupted(long number);

/// Whether a signal of the app waits to be delivered to the stopped thread: then EINTR is that signal's, and stays.
/// Async-signal-safe: yes.
bool cunwind_has_pending_signal(pid_t tid);

#pragma GCC visibility pop

#endif
