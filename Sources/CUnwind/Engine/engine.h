// The engine's data, and the functions that its parts share.

#ifndef CUNWIND_ENGINE_H
#define CUNWIND_ENGINE_H

#include <linux/perf_event.h>
#include <signal.h>
#include <sys/types.h>

#include "CUnwind.h"
#include "Engine/stack_copy.h"
#include "Machine/registers.h"
#include "Memory/guarded_memory.h"
#include "Memory/modules.h"
#include "Methods/async_walk.h"
#include "Methods/stop_helper.h"
#include "Methods/task_context.h"
#include "Unwinding/unwind.h"

typedef struct cunwind_helper_memory {
  cunwind_stop_request *request;
  uint8_t *stack;       ///< With a guard page at its low end.
  pid_t unreaped;       ///< A helper that did not end in time and may still use this memory; 0 if there is none.
  uint64_t left_until;  ///< The time until which that helper may wait for its thread, in monotonic nanoseconds.
  bool name_as_tracer;  ///< The kernel requires PR_SET_PTRACER (Yama).
  bool is_checked;      ///< The next two fields are valid.
  bool is_forbidden;    ///< A seccomp filter would kill the helper.
  bool may_be_placed;   ///< No seccomp filter kills a thread that chooses its processor.
} cunwind_helper_memory;

/// A stop whose thread has not stopped yet, with the memory that its helper uses.
typedef struct cunwind_pending_stop {
  pid_t tid;       ///< 0: this place is free.
  bool is_wanted;  ///< False: the helper only releases the thread.
  cunwind_helper_memory helper;
  cunwind_stack_copy *copy;
} cunwind_pending_stop;

struct cunwind_signal_slot;

/// The size of the path of the directory with the threads' files, in bytes.
#define CUNWIND_PROC_PATH_BYTES 256

struct cunwind_engine {
  char proc_directory[CUNWIND_PROC_PATH_BYTES];  ///< The directory with the threads' files.
  pid_t process;  ///< The process that created the engine. A child of fork(2) must not use its copy.
  int signal_number;
  cunwind_modules modules;
  cunwind_page_cache pages;
  cunwind_stack_copy *copy;  ///< Never NULL after creation.
  cunwind_unwinder unwinder;
  cunwind_helper_memory helper;
  cunwind_async_walk walk;
  cunwind_context context;                      ///< Of the last capture.
  const cunwind_context_layout *wanted_layout;  ///< For the next helper; NULL: it reads no context.
  uint64_t wanted_pointer;                      ///< The thread pointer of its thread.
  cunwind_pending_stop pending[CUNWIND_MAX_PENDING_STOPS];
  cunwind_helper_memory spare;     ///< Prepared together with `spare_copy`; else empty.
  cunwind_stack_copy *spare_copy;  ///< NULL: no spare is prepared.
  struct perf_event_attr sampled_event;
  cunwind_helper_memory sampler;            ///< The memory of the helper that opens perf events.
  bool perf_is_checked;                     ///< The next field is valid.
  bool perf_is_forbidden;                   ///< A seccomp filter kills the caller of perf_event_open(2).
  struct cunwind_signal_slot *signal_slot;  ///< NULL until the first capture by signal.
};

/// The most bytes of /proc/<tid>/status that are read. A "Groups:" line of more than a thousand groups is longer.
#define CUNWIND_STATUS_BYTES 16384

struct cunwind_thread {
  pid_t tid;
  int signal_number;  ///< The engine's.
  // -1: the file does not exist, or the process may not open it.
  int system_call_file;
  int status_file;
  int slices_file;  ///< schedstat.
  int wait_file;    ///< wchan; open only if there is no `system_call_file`.
  cunwind_stack_bounds bounds;
  uint64_t thread_pointer;  ///< 0: not known yet.
  char text[CUNWIND_STATUS_BYTES];
};

#pragma GCC visibility push(hidden)

bool cunwind_helper_init(cunwind_helper_memory *helper);
void cunwind_helper_destroy(cunwind_helper_memory *helper);

/// How long a helper may run after the bound on a stop before it is killed, and how long a killed helper may take to
/// end, in nanoseconds (50 ms).
#define CUNWIND_HELPER_GRACE_NANOSECONDS 50000000ull

/// Reaps a helper that did not end in time; waits for its end for at most `bound` nanoseconds. Returns whether no
/// helper is left, so that its memory can be reused. Async-signal-safe: yes.
bool cunwind_helper_has_ended(cunwind_helper_memory *helper, uint64_t bound);

/// Creates a helper process that runs `function` with the request, first on the caller's processor. Returns its id, or
/// a negative errno. Async-signal-safe: yes.
long cunwind_make_helper(cunwind_helper_memory *helper, int (*function)(void *));

/// Waits until `alive` is 0, at most `bound` nanoseconds. True: the helper no longer runs our code. Async-signal-safe:
/// yes.
bool cunwind_wait_until_gone(uint32_t *alive, uint64_t bound);

/// Stores a stop's system call and time in `info`. Async-signal-safe: yes.
void cunwind_describe_stop(const cunwind_stop_request *answer, cunwind_capture_info *info);

/// Allocates a helper's memory and a copy, which replace those of a stop that is set aside. False: no place or no
/// memory is left. Async-signal-safe: no.
bool cunwind_prepare_spare(cunwind_engine *engine);

/// Sets aside the helper that still waits for `tid`, and its copy; the spare ones take their place.
/// Async-signal-safe: yes.
void cunwind_set_aside(cunwind_engine *engine, pid_t tid, bool is_wanted);

/// Returns CUNWIND_OK if no earlier stop of the thread is under way, CUNWIND_PENDING if one is and its result is
/// wanted, CUNWIND_FAILED if one is and only has to release the thread. Async-signal-safe: yes.
cunwind_status cunwind_pending_status(cunwind_engine *engine, pid_t tid);

/// Frees the memory of stops that were set aside, if the helper has ended and the result is not wanted. Waits for each
/// helper for at most `bound` nanoseconds. Async-signal-safe: no.
void cunwind_tidy_pending(cunwind_engine *engine, uint64_t bound);

/// Ends all stops that were set aside. Async-signal-safe: no.
void cunwind_pending_destroy(cunwind_engine *engine);

/// Creates a copy with its buffer; NULL with errno on failure. Async-signal-safe: no.
cunwind_stack_copy *cunwind_copy_create(void);
/// Frees a copy; does nothing for NULL. Async-signal-safe: no.
void cunwind_copy_destroy(cunwind_stack_copy *copy);

/// The most processors that a kernel supports (CONFIG_NR_CPUS of x86-64).
#define CUNWIND_MAX_PROCESSORS 8192

/// The processors that a thread may be on.
typedef struct cunwind_processors {
  uint64_t words[CUNWIND_MAX_PROCESSORS / 64];
  long bytes;  ///< The used bytes of `words`. 0: the affinity was not changed.
} cunwind_processors;

/// Binds the calling thread, and children that it creates, to its current processor; takes 2 us. `*before` is for
/// cunwind_processor_roam(), which ends that for the thread, not for its children. Async-signal-safe: yes.
void cunwind_processor_stay(cunwind_processors *before);
void cunwind_processor_roam(cunwind_processors *before);

/// Runs the helper once on `tid`, whose stack it copies up to `bounds`. `may_stay`: if the thread does not stop in
/// time, the request stays, and the result is CUNWIND_PENDING instead of CUNWIND_TIMED_OUT. Async-signal-safe: no.
cunwind_status cunwind_run_helper(cunwind_engine *engine, pid_t tid, cunwind_stack_bounds bounds, bool may_stay);

/// Reaps a child with any exit signal, within `bound` nanoseconds; `*status` is that of wait(2). True also if the app
/// has reaped it. Async-signal-safe: yes.
bool cunwind_reap(pid_t pid, uint64_t bound, int *status);

/// Returns whether a seccomp filter kills the caller of the system call `number`, with `first` as its first argument
/// and 0 as the others. A child with a copy of our memory tries the call. Async-signal-safe: yes.
bool cunwind_call_is_deadly(long number, long first);

/// Returns whether the opened thread still exists; another thread with its id does not count. Async-signal-safe: yes.
bool cunwind_thread_is_there(const cunwind_thread *thread);

/// The first half of cunwind_thread_inspect(): state, blocked signal, and switch counts. False: the thread has ended.
/// Async-signal-safe: yes.
bool cunwind_thread_read_status(cunwind_thread *thread, cunwind_thread_status *thread_status);
/// The second half: whether it is blocked, the system call, SP and PC. False: the thread has ended. Async-signal-safe:
/// yes.
bool cunwind_thread_read_system_call(cunwind_thread *thread, cunwind_thread_status *thread_status);

/// Returns the number of time slices that the thread has begun so far (sched-stats.rst of the kernel). 0: the kernel
/// does not count them, or the thread has ended. Async-signal-safe: yes.
uint64_t cunwind_thread_slices(cunwind_thread *thread);

/// The status of a blocked thread before its stack is read.
typedef struct cunwind_blocked_thread {
  uint64_t slices;                      ///< 0: not counted; `thread_status` has the counts of switches instead.
  cunwind_thread_status thread_status;  ///< Its system call, SP and PC.
} cunwind_blocked_thread;

/// Inspects a thread before its stack is read. Returns CUNWIND_OK, CUNWIND_NOT_BLOCKED, CUNWIND_NOT_SHOWN or
/// CUNWIND_NO_SUCH_THREAD. Async-signal-safe: yes.
cunwind_status cunwind_thread_before_read(cunwind_thread *thread, cunwind_blocked_thread *before);

/// Inspects the thread after the read. Returns CUNWIND_OK if it stayed blocked at the same place, so that the read is
/// valid, else CUNWIND_MOVED or CUNWIND_NO_SUCH_THREAD. Async-signal-safe: yes.
cunwind_status cunwind_thread_after_read(cunwind_thread *thread, const cunwind_blocked_thread *before);

/// Returns the layout of contexts, and learns the thread's thread pointer. NULL: the context cannot be read; the engine's
/// context says why. Async-signal-safe: yes.
const cunwind_context_layout *cunwind_context_prepare(cunwind_engine *engine, cunwind_thread *thread);

/// A method that copies a thread once: sets `*copy` and `*registers`, adds its cost to `info`, and returns why it
/// failed.
typedef cunwind_status cunwind_copying(cunwind_engine *engine, cunwind_thread *thread, const cunwind_stack_copy **copy,
                                       cunwind_registers *registers, cunwind_capture_info *info);

/// Unwinds a copy that cannot be repeated. Async-signal-safe: no.
void cunwind_finish(cunwind_engine *engine, cunwind_thread *thread, const cunwind_stack_copy *copy,
                    const cunwind_registers *registers, cunwind_stack *stack);

/// Empties a stack. Async-signal-safe: yes.
void cunwind_clear(cunwind_stack *stack);

/// Captures a thread with the method `copy_once`. Async-signal-safe: no.
cunwind_status cunwind_capture_by(cunwind_copying *copy_once, cunwind_engine *engine, cunwind_thread *thread,
                                  cunwind_stack *stack, cunwind_capture_info *info);

/// Finds the number of the system call whose instruction ends at `pc`, from the code before it (x86-64) or from
/// `registers`; -1 if they do not show it. False: there is no such instruction. Async-signal-safe: yes.
bool cunwind_call_before(uint64_t pc, const cunwind_registers *registers, int64_t *number);

/// Sleeps for `nanoseconds` without the C library's cancellation point. Async-signal-safe: yes.
void cunwind_pause(uint64_t nanoseconds);

/// Removes the handler and frees the slot, unless a signal may still arrive. Async-signal-safe: no.
void cunwind_signal_slot_destroy(cunwind_engine *engine);

#pragma GCC visibility pop

#endif
