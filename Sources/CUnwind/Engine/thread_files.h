// An open thread: the files that show its status, and what its captures have learned.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "CUnwind.h"
#include "Engine/stack_copy.h"

/// The most bytes of /proc/<tid>/status that are read. A "Groups:" line of more than a thousand groups is longer.
#define CUNWIND_STATUS_BYTES 16384

/// The files of a thread; wchan is open only if there is no syscall.
enum { CUNWIND_FILE_STATUS, CUNWIND_FILE_SYSCALL, CUNWIND_FILE_SCHEDSTAT, CUNWIND_FILE_WCHAN, CUNWIND_THREAD_FILES };

struct cunwind_thread {
  pid_t tid;
  int files[CUNWIND_THREAD_FILES];            ///< -1: the file does not exist, or the process may not open it.
  uint64_t identities[CUNWIND_THREAD_FILES];  ///< What the open files are, in case their numbers are others' later.
  cunwind_stack_bounds bounds;
  uint64_t thread_pointer;  ///< 0: not known yet.
  char text[CUNWIND_STATUS_BYTES];
};

/// The status of a blocked thread before its stack is read.
typedef struct cunwind_blocked_thread {
  uint64_t slices;                      ///< 0: not counted; `thread_status` has the counts of switches instead.
  cunwind_thread_status thread_status;  ///< Its system call, SP and PC.
} cunwind_blocked_thread;

#pragma GCC visibility push(hidden)

/// Returns whether this process has a thread with that id; true where /proc does not show it. Async-signal-safe: yes.
bool cunwind_thread_exists(pid_t tid);

/// Returns whether the opened thread still exists; another thread with its id does not count. Async-signal-safe: yes.
bool cunwind_thread_is_there(const cunwind_thread *thread);

/// The first half of cunwind_thread_inspect(): state, blocked signals, and switch counts. False: the thread has ended.
bool cunwind_thread_read_status(cunwind_thread *thread, cunwind_thread_status *thread_status);
/// The second half: whether it is blocked, the system call, SP and PC. False: the thread has ended.
bool cunwind_thread_read_system_call(cunwind_thread *thread, cunwind_thread_status *thread_status);

/// Returns the number of time slices that the thread has begun so far (sched-stats.rst of the kernel). 0: the kernel
/// does not count them, or the thread has ended. Async-signal-safe: yes.
uint64_t cunwind_thread_slices(cunwind_thread *thread);

/// Inspects a thread before its stack is read: CUNWIND_OK, _NOT_BLOCKED, _NOT_SHOWN or _NO_SUCH_THREAD.
cunwind_status cunwind_thread_before_read(cunwind_thread *thread, cunwind_blocked_thread *before);

/// Inspects it afterwards: CUNWIND_OK if it stayed blocked at the same place, else CUNWIND_MOVED or _NO_SUCH_THREAD.
cunwind_status cunwind_thread_after_read(cunwind_thread *thread, const cunwind_blocked_thread *before);

#pragma GCC visibility pop
