// An open thread: the files that show its status, and what its captures have learned.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "CUnwind.h"
#include "Engine/stack_copy.h"

/// The most bytes of /proc/<tid>/status that are read. A "Groups:" line of more than a thousand groups is longer.
#define CUNWIND_STATUS_BYTES 16384
/// The most bytes of a thread's directory, with the zero.
#define CUNWIND_THREAD_PATH_BYTES 272

/// In the order of `cunwind_thread_file`.
enum {
  CUNWIND_FILE_SCHEDSTAT,
  CUNWIND_FILE_STATUS,
  CUNWIND_FILE_STAT,
  CUNWIND_FILE_SYSCALL,
  CUNWIND_FILE_WCHAN,
  CUNWIND_THREAD_FILES
};

struct cunwind_thread {
  pid_t tid;
  unsigned kept;                              ///< The number of files that are counted as open for long.
  int files[CUNWIND_THREAD_FILES];            ///< -1: the file does not exist, or the process may not open it.
  uint64_t identities[CUNWIND_THREAD_FILES];  ///< What the open files are, in case their numbers are others' later.
  cunwind_stack_bounds bounds;
  uint64_t thread_pointer;     ///< 0: not known yet.
  cunwind_thread_status seen;  ///< The last inspection, whose place and counts a read replaces if the thread has moved.
  bool is_brief;               ///< The files may take a descriptor that is left to the app.
  bool is_inspected;           ///< `seen` is as inspected.
  bool is_in_other_group;      ///< By the last comparison of control groups.
  uint64_t groups_until;       ///< When they have to be compared again, in monotonic nanoseconds; 0: now.
  char directory[CUNWIND_THREAD_PATH_BYTES];
  char text[CUNWIND_STATUS_BYTES];
};

#pragma GCC visibility push(hidden)

/// Returns whether this process has a thread with that id; true where /proc does not show it. Async-signal-safe: yes.
bool cunwind_thread_exists(pid_t tid);

/// Returns whether the opened thread still exists; another thread with its id does not count. Async-signal-safe: yes.
bool cunwind_thread_is_there(const cunwind_thread *thread);

/// Returns whether the thread is in another control group than the calling one, whose helper is in that of the caller: a
/// quota or a freezer could stop the helper, and not the thread. Known for a minute. False where /proc does not show it.
bool cunwind_thread_is_in_other_group(cunwind_thread *thread);

/// Reads the state, blocked signals, and switch counts. False: the thread has ended.
bool cunwind_thread_read_status(cunwind_thread *thread, cunwind_thread_status *thread_status);

/// Returns whether the stack of the thread can be read, by what was seen of it: CUNWIND_OK, _NOT_BLOCKED or _NOT_SHOWN.
cunwind_status cunwind_thread_may_be_read(const cunwind_thread *thread);

/// Sees anew where the thread is, before its stack is read: CUNWIND_OK, _NOT_BLOCKED, _NOT_SHOWN or _NO_SUCH_THREAD.
cunwind_status cunwind_thread_before_read(cunwind_thread *thread);

/// Inspects it afterwards: CUNWIND_OK if it stayed blocked in the place that was seen, else _MOVED or _NO_SUCH_THREAD.
cunwind_status cunwind_thread_after_read(cunwind_thread *thread);

#pragma GCC visibility pop
