// Threads in every state that the capture engine supports, and checks of the engine. For tests only.

#ifndef CUNWIND_TEST_SUPPORT_H
#define CUNWIND_TEST_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "CUnwind.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Creates an engine with default options.
static inline cunwind_engine *_Nullable cunwind_test_engine(int signal_number) {
  cunwind_options options = {.signal_number = signal_number};
  return cunwind_engine_create(&options);
}

// ---- Threads that block ---------------------------------------------------------------------------------------------

/// A system call (or a wrapper of one) in which a thread can block.
typedef struct cunwind_test_call {
  const char *_Nonnull name;
  bool is_timed;          ///< It returns by itself after its timeout, and never earlier.
  bool is_ended_by_stop;  ///< The kernel makes it return EINTR after a stop, unless the stop prevents that.
} cunwind_test_call;

size_t cunwind_test_call_count(void);
/// Returns entry `index` of the list; index < cunwind_test_call_count().
cunwind_test_call cunwind_test_call_at(size_t index);
/// Returns whether `address` is in the test's function that makes call `index` (cunwind_test_block_in_...).
bool cunwind_test_call_contains(size_t index, uint64_t address);

/// Makes the timed call `index`, which blocks for about `milliseconds`. Returns 0 if it ended as it should, else an errno.
int cunwind_test_call_once(size_t index, uint32_t milliseconds);

typedef struct cunwind_test_blocker cunwind_test_blocker;

/// The results of the thread's calls.
typedef struct cunwind_test_blocker_result {
  uint32_t iterations;
  uint32_t interrupted;  ///< The call ended with EINTR.
  uint32_t early;        ///< The call returned before its timeout, as if the timeout had passed.
  uint32_t failed;       ///< Any other result; `error` is the last errno.
  int error;
} cunwind_test_blocker_result;

/// Returns a new thread that repeats call `index`; each call blocks for about `milliseconds`, 10...1000
/// (sleep(3): one second). NULL with errno on failure.
cunwind_test_blocker *_Nullable cunwind_test_blocker_start(size_t index, uint32_t milliseconds);
pid_t cunwind_test_blocker_tid(const cunwind_test_blocker *_Nonnull blocker);
/// Ends the thread after its current call, and frees it. If it does not end, `failed` counts that, with ETIMEDOUT.
cunwind_test_blocker_result cunwind_test_blocker_stop(cunwind_test_blocker *_Nonnull blocker);

// ---- Threads in other states ----------------------------------------------------------------------------------------

typedef enum cunwind_test_posture {
  CUNWIND_TEST_SPINNING,            ///< On CPU, under `depth` frames of about 1 KiB.
  CUNWIND_TEST_IN_VFORK,            ///< In vfork(2): uninterruptible, until it is to end.
  CUNWIND_TEST_IN_SIGNAL_HANDLER,   ///< Spinning in a handler that interrupted cunwind_test_posture_function.
  CUNWIND_TEST_IN_ALTERNATE_STACK,  ///< The same, on a stack of sigaltstack(2).
  CUNWIND_TEST_BELOW_LEFTOVER,   ///< Spinning below a function without unwind information; a local is a return address.
  CUNWIND_TEST_UNDER_NEW_CODE,   ///< Spinning under a function that was made at run time.
  CUNWIND_TEST_CALLED_NULL,      ///< After a call through a NULL pointer, in the handler of the fault.
  CUNWIND_TEST_IN_ALLOCA,        ///< Blocked in a call by a function whose frame has no fixed size.
  CUNWIND_TEST_BLOCKING_SIGNALS  ///< Spinning with every signal blocked.
} cunwind_test_posture;

typedef struct cunwind_test_thread cunwind_test_thread;

/// Returns a new thread that has reached that posture. NULL with errno on failure.
cunwind_test_thread *_Nullable cunwind_test_thread_start(cunwind_test_posture posture, uint32_t depth);
pid_t cunwind_test_thread_tid(const cunwind_test_thread *_Nonnull thread_state);
/// Returns whether `address` is in the function in which the thread is in its posture.
bool cunwind_test_thread_contains(uint64_t address);
/// Ends and frees the thread. Returns the number of its rounds since its start: 0 means that it was left stopped.
uint64_t cunwind_test_thread_stop(cunwind_test_thread *_Nonnull thread_state);

/// Permits any process to trace this one. Yama's scope 1 permits only ancestors, and a debugger that a test runs is a
/// sibling. Async-signal-safe: yes.
void cunwind_test_allow_tracing(void);
/// Stops a child's first thread for `milliseconds`, as a debugger does at a breakpoint, or until `end` can be read (-1:
/// none); its other threads continue. Returns false with errno if the thread was not stopped.
bool cunwind_test_hold(pid_t tid, uint32_t milliseconds, int end);

/// Keeps the calling thread in vfork(2), uninterruptible, until a child has slept for `milliseconds`.
void cunwind_test_sleep_in_vfork(uint32_t milliseconds);

// ---- Checks of the engine -------------------------------------------------------------------------------------------

/// What a check is about.
typedef enum cunwind_test_topic {
  CUNWIND_TEST_STATES,     ///< A thread in each state, captured by each method.
  CUNWIND_TEST_VFORK,      ///< A thread in vfork(2).
  CUNWIND_TEST_HELPERS,    ///< Helpers that are killed, stopped or late.
  CUNWIND_TEST_SIGNALS,    ///< The app's signals, and captures by signal.
  CUNWIND_TEST_REFUSALS,   ///< Calls that the kernel refuses, and threads that are not there.
  CUNWIND_TEST_MEMORY,     ///< Reads of memory.
  CUNWIND_TEST_IMAGES,     ///< The list of images.
  CUNWIND_TEST_DAMAGE,     ///< Damaged stacks and unwind tables.
  CUNWIND_TEST_UNWINDERS,  ///< libunwind and the built-in stepper.
  CUNWIND_TEST_LOCKS,      ///< Threads that hold locks.
  CUNWIND_TEST_CALLS,      ///< Blocking calls.
} cunwind_test_topic;

/// One promise of the engine. Swift's tests run the checks, and a program without Swift for other machines.
typedef struct cunwind_test_check {
  cunwind_test_topic topic;
  const char *_Nonnull name;
  int argument;
} cunwind_test_check;

size_t cunwind_test_check_count(void);
/// Returns entry `index` of the table; index < cunwind_test_check_count().
cunwind_test_check cunwind_test_check_at(size_t index);
/// Runs a check. Returns what it says, which is valid until this thread's next check.
const char *_Nonnull cunwind_test_run_check(size_t index, bool *_Nonnull has_passed);

/// Whether a call that a stop has interrupted can begin again with this C library.
bool cunwind_test_calls_can_restart(void);

/// Whether the caller of a stub that no table covers is found, on x86-64; the library's `call_through_stub` calls it.
bool cunwind_test_steps_out_of_stub(const char *_Nonnull library);

/// Whether an engine finds the beginning of a function that the library exports. The library stays loaded.
bool cunwind_test_finds_function(const char *_Nonnull library, const char *_Nonnull name);

/// Whether the library is listed, once and at its place, while it is loaded.
bool cunwind_test_lists_library(const char *_Nonnull path);

// ---- Long calls -----------------------------------------------------------------------------------------------------

/// A read(2) of 2 GiB, which stays in the kernel, on a CPU, for several times the bound on a stop. No signal interrupts it.
typedef struct cunwind_test_kernel_call cunwind_test_kernel_call;

/// Creates a thread for one such call. NULL: no memory or no file.
cunwind_test_kernel_call *_Nullable cunwind_test_kernel_call_create(void);
pid_t cunwind_test_kernel_call_tid(const cunwind_test_kernel_call *_Nonnull call);
/// The number of bytes that the call moves if nothing disturbs it.
size_t cunwind_test_kernel_call_length(const cunwind_test_kernel_call *_Nonnull call);
/// The descriptor that it reads: its first argument.
int cunwind_test_kernel_call_source(const cunwind_test_kernel_call *_Nonnull call);
/// Lets the thread make the call, and returns when it is in it. The thread stays alive afterwards.
void cunwind_test_kernel_call_begin(cunwind_test_kernel_call *_Nonnull call);
/// Returns whether the call has returned.
bool cunwind_test_kernel_call_is_over(const cunwind_test_kernel_call *_Nonnull call);
/// Returns whether `address` is in the function that makes the call.
bool cunwind_test_kernel_call_contains(uint64_t address);
/// Waits for the end of call and thread, and frees both. Returns the call's result, or a negative error number.
long cunwind_test_kernel_call_finish(cunwind_test_kernel_call *_Nonnull call);

/// A call that moves or copies much at once.
typedef enum cunwind_test_big_call {
  CUNWIND_TEST_BIG_READ,
  CUNWIND_TEST_BIG_WRITE,
  CUNWIND_TEST_BIG_COPY,
  CUNWIND_TEST_BIG_MUNMAP,
  CUNWIND_TEST_BIG_FORK,
} cunwind_test_big_call;

/// Makes one such call, or several if copies end early; `*calls` gets their number. `source` and `sink` are files, and
/// `memory` has `length` bytes. Waits for a forked child, which ends at once. Returns the result of the call, or a
/// negative error number.
long cunwind_test_make_big_call(cunwind_test_big_call call, int source, int sink, void *_Nonnull memory, size_t length,
                                unsigned *_Nonnull calls);
/// Returns whether `address` is in that function.
bool cunwind_test_big_call_contains(uint64_t address);
/// Maps `length` bytes in pages of 4 KiB. Reads them first (one shared page of zeros), or leaves them untouched. NULL: no
/// memory. Unmap the memory with munmap(2).
void *_Nullable cunwind_test_map_small_pages(size_t length, bool reads);

/// Creates an epoll set with one event, which write(2) of 8 bytes sends. Returns the set's descriptor, or -1. Close both.
int cunwind_test_epoll(int *_Nonnull event);
/// Waits for the event without an end, and takes it.
void cunwind_test_take_event(int set, int event);

/// Forks; the child calls `work` and ends at once. Returns the number of the child's threads at that time, or a
/// negative error number: ETIMEDOUT if the child did not end within 30 s, ECHILD if it died.
int cunwind_test_fork(void (*_Nonnull work)(void));

/// Makes a process and a child of it that both have the id 1, in PID namespaces of their own. The process calls
/// `first`, and then the child `second`. Returns what that does, 0 or 1; 2 where the system permits no namespaces; or a
/// negative error number.
int cunwind_test_fork_twin(void (*_Nonnull first)(void), bool (*_Nonnull second)(void));

// The settings of threads.

typedef struct {
  bool has_usual_policy;    ///< SCHED_OTHER.
  bool has_all_processors;  ///< Those of the process's first thread.
  int timer_slack;          ///< In nanoseconds.
  size_t stack_bytes;
} cunwind_test_thread_settings;

/// Gives the calling thread the policy SCHED_BATCH, one processor and a timer slack of 1 ms.
void cunwind_test_take_odd_settings(void);

cunwind_test_thread_settings cunwind_test_own_settings(void);

#ifdef __cplusplus
}
#endif

#endif  // CUNWIND_TEST_SUPPORT_H
