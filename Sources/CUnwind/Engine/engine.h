// What the parts of an engine share.

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
#include "Unwinding/unwind.h"

typedef struct cunwind_helper_memory {
  cunwind_stop_request *request;
  uint8_t *stack;       ///< With a guard page at its low end.
  pid_t unreaped;       ///< A helper that did not end in time: until it is reaped its memory is its own. Else 0.
  uint64_t left_until;  ///< Until when that one may still wait for its thread, in monotonic nanoseconds.
  bool name_as_tracer;  ///< The kernel asked for PR_SET_PTRACER (Yama).
  bool is_checked;      ///< The next two are known.
  bool is_forbidden;    ///< A seccomp filter would kill the helper.
  bool may_be_placed;   ///< No seccomp filter kills for choosing a processor.
} cunwind_helper_memory;

/// A stop whose thread has not stopped yet, with the memory that its helper uses.
typedef struct cunwind_pending_stop {
  pid_t tid;       ///< 0: this place is free.
  bool is_wanted;  ///< False: the helper only releases the thread.
  cunwind_helper_memory helper;
  cunwind_stack_copy *copy;
} cunwind_pending_stop;

struct cunwind_signal_slot;

/// Bytes of the path of the directory with the threads' files.
#define CUNWIND_PROC_PATH_BYTES 256

struct cunwind_engine {
  char proc_directory[CUNWIND_PROC_PATH_BYTES];  ///< Where the threads' files are.
  pid_t process;  ///< Whose engine it is: a fork(2)ed child has a copy that it must not use.
  int signal_number;
  cunwind_modules modules;
  cunwind_page_cache pages;
  cunwind_stack_copy *copy;  ///< Never NULL in an engine that was made.
  cunwind_unwinder unwinder;
  cunwind_helper_memory helper;
  cunwind_async_walk walk;
  cunwind_pending_stop pending[CUNWIND_MAX_PENDING_STOPS];
  cunwind_helper_memory spare;     ///< Prepared together with the next one; else empty.
  cunwind_stack_copy *spare_copy;  ///< NULL: none is prepared.
  struct perf_event_attr sampled_event;
  cunwind_helper_memory sampler;            ///< Of the helper that opens perf events.
  bool perf_is_checked;                     ///< The next one is known.
  bool perf_is_forbidden;                   ///< A seccomp filter kills for perf_event_open(2).
  struct cunwind_signal_slot *signal_slot;  ///< NULL until the first capture by signal.
};

/// Bytes of /proc/<tid>/status that are read. A "Groups:" line of more than a thousand groups needs more.
#define CUNWIND_STATUS_BYTES 16384

struct cunwind_thread {
  pid_t tid;
  int signal_number;  ///< The engine's.
  // -1: there is none, or the process may not open it.
  int system_call_file;
  int status_file;
  int slices_file;  ///< schedstat.
  int wait_file;    ///< wchan; only where there is no `system_call_file`.
  cunwind_stack_bounds bounds;
  char text[CUNWIND_STATUS_BYTES];
};

#pragma GCC visibility push(hidden)

bool cunwind_helper_init(cunwind_helper_memory *helper);
void cunwind_helper_destroy(cunwind_helper_memory *helper);

/// How much longer than the bound on a stop a helper may take before it is killed, and how long a killed one may take to
/// end, in nanoseconds (50 ms).
#define CUNWIND_HELPER_GRACE_NANOSECONDS 50000000ull

/// Reaps a helper that did not end in time; waits so long for its end. Returns whether there is none any more, so that its
/// memory may be used again. Async-signal-safe: yes.
bool cunwind_helper_has_ended(cunwind_helper_memory *helper, uint64_t bound);

/// Makes a helper process that runs `function` with the request, and stays on its maker's processor at first. Returns its id, or
/// a negative errno. Async-signal-safe: yes.
long cunwind_make_helper(cunwind_helper_memory *helper, int (*function)(void *));

/// Waits until `alive` is 0, at most `bound` nanoseconds. True: the helper runs no more code of ours. Async-signal-safe: yes.
bool cunwind_wait_until_gone(uint32_t *alive, uint64_t bound);

/// Fills in what a stop says beside the stack: the call, and when. Async-signal-safe: yes.
void cunwind_describe_stop(const cunwind_stop_request *answer, cunwind_capture_info *info);

/// Makes the helper's memory and the copy that replace those of a stop that is set aside. False: no place or no memory is
/// left. Async-signal-safe: no.
bool cunwind_prepare_spare(cunwind_engine *engine);

/// Moves the helper that still waits for `tid`, and its copy, out of the way; the prepared ones take their place.
/// Async-signal-safe: yes.
void cunwind_set_aside(cunwind_engine *engine, pid_t tid, bool is_wanted);

/// CUNWIND_OK: no earlier stop of the thread is under way. CUNWIND_PENDING: one is, and its result is wanted. CUNWIND_FAILED:
/// one is, and only has to release the thread. Async-signal-safe: yes.
cunwind_status cunwind_pending_status(cunwind_engine *engine, pid_t tid);

/// Frees the memory of the stops set aside whose helper has ended and whose result is not wanted; waits so long for each
/// helper. Async-signal-safe: no.
void cunwind_tidy_pending(cunwind_engine *engine, uint64_t bound);

/// Ends all stops that were set aside. Async-signal-safe: no.
void cunwind_pending_destroy(cunwind_engine *engine);

/// Makes a copy's buffer; NULL with errno. Async-signal-safe: no.
cunwind_stack_copy *cunwind_copy_create(void);
/// NULL is fine. Async-signal-safe: no.
void cunwind_copy_destroy(cunwind_stack_copy *copy);

/// Processors that a kernel may have (CONFIG_NR_CPUS of x86-64, at most).
#define CUNWIND_MAX_PROCESSORS 8192

/// The processors that a thread may be on.
typedef struct cunwind_processors {
  uint64_t words[CUNWIND_MAX_PROCESSORS / 64];
  long bytes;  ///< Of `words`, in use. 0: nothing was changed.
} cunwind_processors;

/// Keeps the calling thread, and the children that it makes, on the processor that it is on; 2 us. `*before` is for
/// cunwind_processor_roam(), which undoes it for the thread alone. Async-signal-safe: yes.
void cunwind_processor_stay(cunwind_processors *before);
void cunwind_processor_roam(cunwind_processors *before);

/// Runs the helper once on `tid`, which it copies up to `bounds`. `may_stay`: CUNWIND_PENDING instead of
/// CUNWIND_TIMED_OUT for a thread that stays asked. Async-signal-safe: no.
cunwind_status cunwind_run_helper(cunwind_engine *engine, pid_t tid, cunwind_stack_bounds bounds, bool may_stay);

/// Reaps a child whatever its exit signal, `*status` as from wait(2), within `bound` nanoseconds. True also when the app
/// has reaped it. Async-signal-safe: yes.
bool cunwind_reap(pid_t pid, uint64_t bound, int *status);

/// Whether a seccomp filter kills the caller of the system call `number` with `first` as its first argument and 0 as the
/// others, tried by a child with a copy of our memory. Async-signal-safe: yes.
bool cunwind_call_is_deadly(long number, long first);

/// Whether the thread that was opened is still there, and not another one with its id. Async-signal-safe: yes.
bool cunwind_thread_is_there(const cunwind_thread *thread);

/// The first half of cunwind_thread_inspect(): state, blocked signal, and switch counts. False: the thread is gone.
/// Async-signal-safe: yes.
bool cunwind_thread_read_status(cunwind_thread *thread, cunwind_thread_status *thread_status);
/// The other half: blocked or not, in which call, SP and PC. False: the thread is gone. Async-signal-safe: yes.
bool cunwind_thread_read_system_call(cunwind_thread *thread, cunwind_thread_status *thread_status);

/// How many time slices the thread has begun so far (kernel's sched-stats.rst). 0: this kernel does not count them, or the
/// thread is gone. Async-signal-safe: yes.
uint64_t cunwind_thread_slices(cunwind_thread *thread);

/// A blocked thread before its stack is read.
typedef struct cunwind_blocked_thread {
  uint64_t slices;                      ///< 0: not counted, then `status` has the switch counts.
  cunwind_thread_status thread_status;  ///< Where it is blocked.
} cunwind_blocked_thread;

/// Inspects a thread before its stack is read. CUNWIND_OK, CUNWIND_NOT_BLOCKED, CUNWIND_NOT_SHOWN, CUNWIND_NO_SUCH_THREAD.
/// Async-signal-safe: yes.
cunwind_status cunwind_thread_before_read(cunwind_thread *thread, cunwind_blocked_thread *before);

/// Whether it was blocked there throughout, which makes what was read valid: CUNWIND_OK, CUNWIND_MOVED,
/// CUNWIND_NO_SUCH_THREAD. Async-signal-safe: yes.
cunwind_status cunwind_thread_after_read(cunwind_thread *thread, const cunwind_blocked_thread *before);

/// One way to copy a thread once: sets `*copy` and `*registers`, adds to `info` what it cost, and says why it failed.
typedef cunwind_status cunwind_copying(cunwind_engine *engine, cunwind_thread *thread, const cunwind_stack_copy **copy,
                                       cunwind_registers *registers, cunwind_capture_info *info);

/// Unwinds a copy that cannot be taken again. Async-signal-safe: no.
void cunwind_finish(cunwind_engine *engine, cunwind_thread *thread, const cunwind_stack_copy *copy,
                    const cunwind_registers *registers, cunwind_stack *stack);

/// Empties a stack. Async-signal-safe: yes.
void cunwind_clear(cunwind_stack *stack);

/// A capture by that way. Async-signal-safe: no.
cunwind_status cunwind_capture_by(cunwind_copying *copy_once, cunwind_engine *engine, cunwind_thread *thread,
                                  cunwind_stack *stack, cunwind_capture_info *info);

/// The number of the system call whose instruction ends at `pc`, from the code before it (x86-64) or from `registers`. -1: not
/// shown. False: there is no such instruction. Async-signal-safe: yes.
bool cunwind_call_before(uint64_t pc, const cunwind_registers *registers, int64_t *number);

/// Sleeps for `nanoseconds` without the C library's cancellation point. Async-signal-safe: yes.
void cunwind_pause(uint64_t nanoseconds);

/// Removes the handler and frees the slot, unless a signal may still arrive. Async-signal-safe: no.
void cunwind_signal_slot_destroy(cunwind_engine *engine);

#pragma GCC visibility pop

#endif
