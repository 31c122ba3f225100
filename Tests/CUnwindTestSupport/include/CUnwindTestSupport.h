// Threads in every state that the capture engine supports, and drivers that try to break the engine. For tests only.

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
  bool is_timed;            ///< It returns by itself after its timeout, and never earlier.
  bool is_ended_by_stop;    ///< The kernel makes it return EINTR after a stop, unless the stop prevents that.
  bool is_ended_by_signal;  ///< It returns EINTR (sleep: early) after a handler, even with SA_RESTART.
} cunwind_test_call;

size_t cunwind_test_call_count(void);
/// Returns entry `index` of the list; index < cunwind_test_call_count().
cunwind_test_call cunwind_test_call_at(size_t index);
/// Returns whether `address` is in the test's function that makes call `index` (cunwind_test_block_in_...).
bool cunwind_test_call_contains(size_t index, uint64_t address);

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

/// Sends a thread of this process a signal, as other monitors do. Its handler does nothing and has SA_RESTART.
/// Returns false if it could not be sent.
bool cunwind_test_send_plain_signal(pid_t tid);

// ---- Images ---------------------------------------------------------------------------------------------------------

/// Returns the number of images of dl_iterate_phdr(3) that the engine does not list with the same base and path. Stores
/// the number of all images of dl_iterate_phdr(3) in `linked`. Refresh the engine first.
size_t cunwind_test_missing_images(const cunwind_engine *_Nonnull engine, size_t *_Nonnull linked);

/// Returns whether another thread can refresh the engine's list within 2 s while this one holds the dynamic linker's
/// lock.
bool cunwind_test_refreshes_beside_held_linker_lock(cunwind_engine *_Nonnull engine);

// ---- Threads in other states ----------------------------------------------------------------------------------------

typedef enum cunwind_test_posture {
  CUNWIND_TEST_SPINNING,            ///< On CPU, under `depth` frames of about 1 KiB.
  CUNWIND_TEST_IN_VFORK,            ///< In vfork(2): uninterruptible, until its child has slept for 400 ms.
  CUNWIND_TEST_IN_SIGNAL_HANDLER,   ///< Spinning in a handler that interrupted cunwind_test_posture_function.
  CUNWIND_TEST_IN_ALTERNATE_STACK,  ///< The same, on a stack of sigaltstack(2).
  CUNWIND_TEST_BELOW_LEFTOVER,   ///< Spinning below a function without unwind information; a local is a return address.
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

/// A state of a thread, and the methods that give a whole stack in it.
typedef struct cunwind_test_state {
  const char *_Nonnull name;
  cunwind_test_posture posture;
  uint32_t depth;
  bool by_read, by_stop, by_signal;
} cunwind_test_state;

size_t cunwind_test_state_count(void);
/// Returns entry `index` of the table; index < cunwind_test_state_count().
cunwind_test_state cunwind_test_state_at(size_t index);
/// Returns the least number of frames of the function in which the thread is in its posture.
uint32_t cunwind_test_state_frames(const cunwind_test_state *_Nonnull state);

/// Permits any process to trace this one. Yama's scope 1 permits only ancestors, and a debugger that a test runs is a
/// sibling. Async-signal-safe: yes.
void cunwind_test_allow_tracing(void);
/// Stops a child's first thread for `milliseconds`, as a debugger does at a breakpoint; its other threads continue.
/// Returns false with errno if the thread was not stopped.
bool cunwind_test_hold(pid_t tid, uint32_t milliseconds);

/// Keeps the calling thread in vfork(2), uninterruptible, until a child has slept for `milliseconds`.
void cunwind_test_sleep_in_vfork(uint32_t milliseconds);

// ---- Drivers that try to break the engine ---------------------------------------------------------------------------

/// The result of unwinding damaged stacks.
typedef struct cunwind_test_fuzz_result {
  uint64_t images;
  uint64_t by_end[8];  ///< Index: a cunwind_end.
  uint64_t frames;
  uint64_t broken;  ///< Violated rules: too many frames, an unknown end, a stack pointer that decreased.
  uint64_t slowest_nanoseconds;
  bool has_library;        ///< libunwind is loaded.
  uint64_t disagreements;  ///< Stacks that our own stepper alone unwound differently.
} cunwind_test_fuzz_result;

/// Unwinds `images` randomly changed copies of real stacks and registers. The same seed gives the same copies.
cunwind_test_fuzz_result cunwind_test_fuzz(uint64_t seed, uint64_t images);

/// The result of unwinding by damaged unwind tables.
typedef struct cunwind_test_table_result {
  uint64_t tables;
  uint64_t found;    ///< The function's entry could be read.
  uint64_t steps;    ///< Of these, a caller or the end of the stack was found.
  uint64_t refused;  ///< Of these, the step failed.
  uint64_t slowest_nanoseconds;
} cunwind_test_table_result;

/// What both steppers made of the functions of all images.
typedef struct cunwind_test_stepper_result {
  bool has_library;  ///< libunwind is loaded.
  uint64_t images, functions, pcs;
  uint64_t steps;     ///< Steps that succeeded.
  uint64_t compared;  ///< Steps of both.
  uint64_t stood_in;  ///< Steps that libunwind failed to make.
  uint64_t disagreements;
  uint64_t first;  ///< The PC of the first disagreement.
} cunwind_test_stepper_result;

/// Steps with random registers from three PCs of every `every`th function of each image of the process.
cunwind_test_stepper_result cunwind_test_compare_steppers(uint64_t seed, uint64_t every);

/// Results of steps that libunwind alone would guess; each is a `cunwind_step`, or -1 without libunwind.
typedef struct cunwind_test_trap_result {
  int uncovered_by_library, uncovered;  ///< From a PC that no table covers.
  int read_by_library, read;            ///< With the registers of a read, where the rules need the frame pointer.
} cunwind_test_trap_result;

cunwind_test_trap_result cunwind_test_stepper_traps(void);

/// Whether the caller of a stub that no table covers is found, on x86-64; the library's `call_through_stub` calls it.
bool cunwind_test_steps_out_of_stub(const char *_Nonnull library);
/// Returns the address to which it returns.
void *_Nullable cunwind_test_here(void);

/// Returns whether an engine of a child of fork(2) is without libunwind, whose locks its parent may have held.
bool cunwind_test_child_leaves_libunwind_alone(void);

/// Loads a file as libunwind. Returns whether it is one; `text` is its name, or the reason why not.
bool cunwind_test_load_unwinder(const char *_Nonnull path, char *_Nonnull text, size_t size);

/// Finds the file that has a symbol of a library, or of the program if `library` is NULL. False: there is none.
bool cunwind_test_file_of(const char *_Nullable library, const char *_Nonnull symbol, char *_Nonnull path, size_t size);

/// Changes a copy of the C library's unwind tables `tables` times, and unwinds one step by each.
cunwind_test_table_result cunwind_test_fuzz_tables(uint64_t seed, uint64_t tables);

/// The result of capturing threads that take locks.
typedef struct cunwind_test_stress_result {
  uint64_t captures;   ///< By stop, with a stack.
  uint64_t reads;      ///< By read, with a stack.
  uint64_t gone;       ///< The thread had ended.
  uint64_t timed_out;  ///< The helper was not given a CPU in time.
  uint64_t failed;     ///< Anything else; `last_status` and `last_error` say what.
  int last_status, last_error;
  uint64_t incomplete;       ///< Did not reach the thread's start; not counting the thread that loads libraries.
  uint64_t rounds;           ///< Rounds of all the threads together.
  uint64_t stuck;            ///< Threads that made no round, or did not end.
  uint64_t lost_children;    ///< fork(2)ed children whose exit status did not arrive.
  uint64_t lost_exceptions;  ///< C++ exceptions that were not caught, or skipped a destructor.
  uint64_t zombies;          ///< Children of this process that were not reaped, helpers included.
  int64_t leaked_files;
  uint64_t slowest_held_nanoseconds, slowest_capture_nanoseconds;
} cunwind_test_stress_result;

/// For `milliseconds`, captures as fast as possible threads that malloc, dlopen, create threads, fork, vfork, print,
/// throw C++ exceptions, change mappings and send themselves signals. Standard output goes to /dev/null during that
/// time.
cunwind_test_stress_result cunwind_test_stress(uint32_t milliseconds);

/// The result of captures by stop while the helper, the thread or the process is killed, stopped or signaled.
typedef struct cunwind_test_fault_result {
  uint64_t captures;   ///< With a stack.
  uint64_t timed_out;  ///< The helper was not given a CPU in time.
  uint64_t failed;     ///< Anything else; `last_status` and `last_error` say what.
  int last_status, last_error;
  uint64_t disturbances;  ///< Helpers killed or stopped; signals sent; stops of the whole process.
  uint64_t lost;          ///< Signals that did not arrive.
  uint64_t rounds;        ///< Of the captured thread, after the last disturbance. 0: it was left stopped.
  uint64_t zombies;
  uint64_t slowest_capture_nanoseconds;
} cunwind_test_fault_result;

/// Kills helper processes (SIGKILL) while they work, for `milliseconds`.
cunwind_test_fault_result cunwind_test_kill_helpers(uint32_t milliseconds);
/// Stops helper processes (SIGSTOP) and never continues them, while they work, for `milliseconds`.
cunwind_test_fault_result cunwind_test_stop_helpers(uint32_t milliseconds);
/// Sends the captured thread queued real-time signals, which must all arrive, for `milliseconds`.
cunwind_test_fault_result cunwind_test_signal_storm(uint32_t milliseconds);
/// Stops and continues (SIGSTOP, SIGCONT) a child process that captures its own thread, for `milliseconds`.
cunwind_test_fault_result cunwind_test_job_control(uint32_t milliseconds);

/// The result of reads of a thread that changes two words whenever it runs. A torn read finds them different.
typedef struct cunwind_test_proof_result {
  bool counted_slices;
  uint64_t valid, refused;
  uint64_t torn_valid, torn_refused;
} cunwind_test_proof_result;

/// Reads such a thread for `milliseconds`. `counts_slices`: proves the reads by time slices if the kernel counts them;
/// else by switches.
cunwind_test_proof_result cunwind_test_read_proof(bool counts_slices, uint32_t milliseconds);

/// The result of the capture of a thread that gets no CPU.
typedef struct cunwind_test_stop_timeout_result {
  cunwind_status capture;
  int wait_error;  ///< The error of the thread's call; 0: it waited for its whole time. -1: the thread got a CPU.
  uint64_t zombies;
} cunwind_test_stop_timeout_result;

/// Captures by stop a thread in epoll_wait(2) while a thread of real-time priority occupies its CPU. Needs CAP_SYS_NICE
/// and two CPUs.
cunwind_test_stop_timeout_result cunwind_test_stop_timeout(void);

/// The captures that work where ptrace is refused.
typedef struct cunwind_test_refusal_result {
  int probe_status, probe_error;
  int stop_status, stop_error;
  int signal_status;
  int read_status;
  bool signal_is_complete, read_is_complete;
} cunwind_test_refusal_result;

/// Stops a thread that another process traces, and again when that process has ended (`*second`). Returns the first
/// status and its `*error`; -1 if the test could not be set up.
int cunwind_test_stop_of_traced(int *_Nonnull error, int *_Nonnull second);

/// Captures in a child process with a seccomp filter for ptrace(2), which returns EPERM or, with `kills`, kills the
/// caller. Returns false with errno if the child could not be made.
bool cunwind_test_refusal(bool kills, cunwind_test_refusal_result *_Nonnull result);

/// What a process with 64 MB of memory finds out about its seccomp filters.
typedef struct cunwind_test_trials {
  bool is_tried;
  uint32_t deadly;       ///< The bits of the calls that kill.
  uint32_t other_calls;  ///< Those that should not.
  uint64_t faults;       ///< The page faults of the process while it writes all its memory again.
  bool is_known;         ///< Before one more filter for ptrace(2), that call is not deadly.
  bool is_known_later;   ///< With it, the call is.
} cunwind_test_trials;

/// Tries the rare calls in a child process with two threads, under filters for process_vm_readv(2) and
/// rt_tgsigqueueinfo(2) with this action. Returns the child's wait status (wait(2)).
int cunwind_test_try_calls(uint32_t action, bool shares_memory, cunwind_test_trials *_Nonnull trials);

/// Runs `body` in a child process, under a seccomp filter with which process_vm_readv(2) fails with `error`, or kills
/// (0). Returns how the child ended (wait(2)); its exit status is 1 if `body` returned true, 0 if false.
int cunwind_test_run_without_vm_readv(int error, bool (*_Nonnull body)(void));

/// Makes a child process read its own memory by that access, also at the edges of a hole, and capture threads with it.
/// Returns 0, the number of the first step that failed, or -1 if the child ended otherwise.
int cunwind_test_memory_access(cunwind_memory_access access);
/// The same, but the engine chooses the access, and process_vm_readv(2) fails with `error`, or kills the child (0).
int cunwind_test_memory_without_call(int error);

/// Makes a child process with such a filter for sched_setattr(2) call cunwind_request_short_slice(). Returns the
/// child's wait status (wait(2)); its exit status is the result of the call.
int cunwind_test_short_slice_under_filter(bool kills);

/// A thread's scheduling attributes (sched_getattr(2)).
typedef struct cunwind_test_scheduling {
  uint32_t policy;
  int32_t nice;
  uint64_t slice_nanoseconds;
} cunwind_test_scheduling;

/// Runs a thread with the nice value `nice` and the policy SCHED_BATCH, which calls cunwind_request_short_slice().
/// False: the call returned false, or the kernel has no sched_getattr(2).
bool cunwind_test_short_slice(int nice, cunwind_test_scheduling *_Nonnull before,
                              cunwind_test_scheduling *_Nonnull after);

/// The result of captures by a signal that the app uses, too.
typedef struct cunwind_test_shared_signal_result {
  uint64_t captures;       ///< By signal, with a stack.
  uint64_t sent, arrived;  ///< The app's own signals, and the number that its handler received.
  bool is_put_back;        ///< The signal has the app's action again afterwards.
} cunwind_test_shared_signal_result;

/// Captures a thread 200 times by a signal that the app handles, among 200 signals for the app's handler.
cunwind_test_shared_signal_result cunwind_test_shared_signal(void);

/// Returns whether this process may choose the id of a child, as cunwind_test_stop_reused_id() must.
bool cunwind_test_may_choose_ids(void);
/// Captures by stop a thread that has ended and whose id another process now has. Returns the cunwind_status, or -1.
int cunwind_test_stop_reused_id(void);

/// Lists images in a child process before and after the file of one of them is cut short. Returns 0 if only the first
/// list has that image, a negative signal number if the child died of a signal, else another number.
int cunwind_test_cut_image(void);

/// Runs a helper that its parent never names as tracer. Returns its wait in nanoseconds, and the cunwind_status.
uint64_t cunwind_test_unnamed_helper(int *_Nonnull status);

/// Gives an engine a child that ends late, like a helper that gets no CPU. Destroys the engine at once, or after the
/// child's end and a refresh of the images. Returns the number of the engine's remaining children, dead or alive; a
/// negative errno on failure.
int cunwind_test_late_helper(bool refreshes);

/// Gives an engine a child that never ends, like a helper that the watchdog detached from and that was then stopped.
/// Returns the number of children left after its time limit; a negative errno on failure, ECHILD if it ended before its
/// limit.
int cunwind_test_overdue_helper(void);

/// A system call that stays in the kernel, on a CPU, for several times the bound on a stop.
typedef enum cunwind_test_kernel_call_kind {
  CUNWIND_TEST_LONG_READ,      ///< read(2) of 2 GiB, which no signal interrupts.
  CUNWIND_TEST_LONG_SENDFILE,  ///< sendfile(2), which a signal interrupts.
} cunwind_test_kernel_call_kind;

typedef struct cunwind_test_kernel_call cunwind_test_kernel_call;

/// Creates a thread for one such call. NULL: no memory or no file.
cunwind_test_kernel_call *_Nullable cunwind_test_kernel_call_create(cunwind_test_kernel_call_kind kind);
pid_t cunwind_test_kernel_call_tid(const cunwind_test_kernel_call *_Nonnull call);
/// The number of bytes that the call moves if nothing disturbs it.
size_t cunwind_test_kernel_call_length(const cunwind_test_kernel_call *_Nonnull call);
/// The descriptor that it reads: its first argument in a read(2).
int cunwind_test_kernel_call_source(const cunwind_test_kernel_call *_Nonnull call);
/// Lets the thread make the call, and returns when it is about to. The thread stays alive afterwards.
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
/// Maps `length` bytes in pages of 4 KiB. Reads them first (one shared page of zeros), writes them, or leaves them
/// untouched. NULL: no memory. Unmap the memory with munmap(2).
void *_Nullable cunwind_test_map_small_pages(size_t length, bool reads, bool writes);

/// Creates an epoll set with one event, which write(2) of 8 bytes sends. Returns the set's descriptor, or -1. Close both.
int cunwind_test_epoll(int *_Nonnull event);
/// Waits for the event without an end, and takes it.
void cunwind_test_take_event(int set, int event);

/// Forks; the child calls `work` and ends at once. Returns the number of the child's threads at that time, or a
/// negative error number: ETIMEDOUT if the child did not end within 30 s, ECHILD if it died.
int cunwind_test_fork(void (*_Nonnull work)(void));

#ifdef __cplusplus
}
#endif

#endif  // CUNWIND_TEST_SUPPORT_H
