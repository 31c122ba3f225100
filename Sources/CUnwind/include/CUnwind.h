// CUnwind captures the stacks of threads of this process.
//
// Three ways to copy a thread's registers and stack (read, stop, signal), and one way to unwind the copy.
// The caller's policy chooses the way.
//
// Threads. An engine and everything made from it belong to one thread at a time (the watchdog); two engines are
// independent of each other. No function here may be called on the thread that is being captured.
//
// Memory. Everything a capture needs is allocated by the `_create` and `_open` functions (about 2 MiB an engine), but
// for the first capture by signal, which makes a buffer of 1 MiB. While a thread is stopped, and inside the signal
// handler, nothing allocates, takes a lock, or blocks. Memory that may not be there is read so that a missing page is an
// error (`cunwind_memory_access`).
//
// fork(2). A child has a copy of the engine that it must not use; it may destroy it.
//
// Errors. Functions that can fail return a `cunwind_status`; `_create` and `_open` return NULL and set errno.

#ifndef CUNWIND_H
#define CUNWIND_H

// clang-format off
#include <features.h>
#if !defined(__GLIBC__)
#error "StallWatch needs glibc, whose locks it reads: build for Linux with glibc, and link Swift statically with --static-swift-stdlib if need be. The Static Linux SDK (Musl) is not supported."
#endif
// clang-format on

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#if !defined(__linux__) || !(defined(__x86_64__) || defined(__aarch64__))
#error "StallWatch supports Linux on x86-64 and aarch64 only: build it for one of these."
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// The most frames of one stack. Of a deeper one the innermost and the outermost halves are kept.
#define CUNWIND_MAX_FRAMES 512
/// The most bytes of a stack that are copied (1 MiB). A stack that is cut has a marked gap.
#define CUNWIND_MAX_STACK_BYTES (1024 * 1024)
/// The longest build ID that is kept, in bytes. SHA-1, the linkers' default, has 20.
#define CUNWIND_MAX_BUILD_ID_BYTES 32
/// How long a read is retried, in nanoseconds (100 us): longer than a thread takes from one wait for a fast disk to the next
/// (repeated fsync(2) takes 35 us each, of which 15 us are waiting; measured). One try takes 5 us.
#define CUNWIND_READ_TIMEOUT_NANOSECONDS 100000ull
/// The longest wait for a thread to stop before its capture is given up or left pending, in nanoseconds (120 ms). Only a thread
/// that gets no CPU, or stays in the kernel, takes so long, and the wait costs it nothing. A cgroup's quota keeps one from running for up to its period: 100 ms by default
/// (Documentation/scheduler/sched-bwc.rst).
#define CUNWIND_STOP_TIMEOUT_NANOSECONDS 120000000ull
/// How much longer the helper alone waits for a thread that was asked to stop, in nanoseconds (2 s), so that the request makes
/// no call of the thread return EINTR. Meanwhile the same thread cannot be stopped again.
#define CUNWIND_RELEASE_TIMEOUT_NANOSECONDS 2000000000ull
/// How long a capture stays pending, in nanoseconds (10 minutes): as long as a stall's samples last.
#define CUNWIND_PENDING_TIMEOUT_NANOSECONDS 600000000000ull
/// Threads that may have been asked to stop and have not stopped yet. With more, a stop fails with EBUSY.
#define CUNWIND_MAX_PENDING_STOPS 4
/// Longest wait for the sample of an open perf event, in nanoseconds (5 ms). A thread on a CPU is sampled within 0.1 ms
/// (measured). In munmap(2) and fork(2) the event's memory cannot be mapped before the call returns.
#define CUNWIND_SAMPLE_TIMEOUT_NANOSECONDS 5000000ull
/// Longest wait for a perf event to be opened, in nanoseconds (30 ms). The machine's first event takes 5 to 15 ms (measured).
#define CUNWIND_OPEN_TIMEOUT_NANOSECONDS 30000000ull
/// Longest wait for the signal handler to run, in nanoseconds (120 ms), for the same reason.
#define CUNWIND_SIGNAL_TIMEOUT_NANOSECONDS 120000000ull

/// Async callers of one stack that are read.
#define CUNWIND_MAX_ASYNC_CALLERS 128

/// How a call ended.
typedef enum cunwind_status {
  CUNWIND_OK = 0,
  CUNWIND_NO_SUCH_THREAD,  ///< The thread is gone, or is not of this process.
  CUNWIND_NOT_BLOCKED,     ///< Read: the thread is on CPU or runnable.
  CUNWIND_MOVED,           ///< Read: the thread ran while it was read; the copy was thrown away.
  CUNWIND_REFUSED,         ///< The kernel did not allow it (`error` says why: EPERM, EACCES, ENOSYS).
  CUNWIND_TIMED_OUT,       ///< The thread did not stop, or its handler did not run, within the bound.
  CUNWIND_NOT_SHOWN,       ///< Read: /proc has not the files here that a read needs.
  CUNWIND_SIGNAL_BLOCKED,  ///< Signal: the thread blocks the signal; none was sent.
  CUNWIND_NOT_IN_CALL,     ///< Perf: the thread was not inside a system call.
  CUNWIND_NOT_SAMPLED,     ///< Perf: the event was not open in time, or the thread was not on a CPU while it was.
  CUNWIND_NOT_PENDING,     ///< No stop of the thread is pending.
  CUNWIND_PENDING,         ///< Stop: the thread has not stopped yet, and is captured when it does.
  CUNWIND_FAILED           ///< Anything else; `error` is the errno.
} cunwind_status;

/// Why a stack is not complete.
typedef enum cunwind_end {
  CUNWIND_END_COMPLETE = 0,      ///< It reached the thread's first function.
  CUNWIND_END_NO_UNWIND_INFO,    ///< A function has no CFI, and neither call-site scan nor frame pointer went on.
  CUNWIND_END_BAD_MEMORY,        ///< A word that was needed is not mapped.
  CUNWIND_END_NOT_IN_COPY,       ///< A word of the stack that was needed lies beyond what was copied.
  CUNWIND_END_LOOP,              ///< The stack pointer did not move outwards.
  CUNWIND_END_BAD_CODE_ADDRESS,  ///< A return address is not in code of any image.
  CUNWIND_END_TOO_DEEP           ///< More steps than the bound on one unwind.
} cunwind_end;

/// How a frame was found.
typedef enum cunwind_frame_source {
  CUNWIND_FRAME_INITIAL = 0,     ///< The registers themselves.
  CUNWIND_FRAME_CFI,             ///< Call frame information.
  CUNWIND_FRAME_CALL_SITE_SCAN,  ///< First word outwards that follows a call instruction.
  CUNWIND_FRAME_POINTER          ///< The frame-pointer chain.
} cunwind_frame_source;

/// How this process reads its own memory where a page may be missing. All give the same bytes and fault at nothing.
typedef enum cunwind_memory_access {
  CUNWIND_MEMORY_ANY = 0,  ///< The first of the following that works.
  CUNWIND_MEMORY_CALL,     ///< process_vm_readv(2).
  CUNWIND_MEMORY_FILE,     ///< /proc/self/mem. Reads pages without read permission, too.
  CUNWIND_MEMORY_PIPE  ///< The kernel copies through a pipe: two calls a page, two descriptors for the time of a read.
} cunwind_memory_access;

typedef struct cunwind_engine cunwind_engine;
typedef struct cunwind_thread cunwind_thread;

/// One frame, innermost first.
typedef struct cunwind_frame {
  uint64_t address;         ///< The frame's PC. A return address unless `is_exact`.
  uint64_t stack_pointer;   ///< The stack pointer inside the frame (its callee's CFA).
  uint8_t is_exact;         ///< 1: the address is the instruction itself (innermost frame, or interrupted by a signal).
  uint8_t is_signal_frame;  ///< 1: the kernel's signal trampoline.
  uint8_t source;           ///< A `cunwind_frame_source`.
  uint8_t reserved;
} cunwind_frame;

/// A stack, unwound.
typedef struct cunwind_stack {
  uint32_t frame_count;            ///< Frames in `frames`.
  uint32_t omitted_count;          ///< Frames left out by a limit...
  uint32_t omitted_at;             ///< ...before this index of `frames`; 0 with no frame left out.
  uint8_t is_omitted_count_exact;  ///< 0: the copy has a gap, and how many frames were in it is not known.
  uint8_t end;                     ///< A `cunwind_end`.
  cunwind_frame frames[CUNWIND_MAX_FRAMES];
} cunwind_stack;

/// Bytes of the name of a function of the kernel (wchan); a longer one is cut.
#define CUNWIND_WAIT_NAME_BYTES 64

/// What the kernel says of a thread.
typedef struct cunwind_thread_status {
  char state;              ///< proc(5)'s letter: R, S, D, T, t, Z, X, I; 0 where it is not shown.
  bool shows_system_call;  ///< /proc shows the call here. If not, `is_blocked` is false and says nothing.
  bool is_blocked;         ///< In a system call or a fault and off CPU: `stack_pointer` and `pc` hold.
  bool signal_is_blocked;  ///< The engine's signal is in the thread's SigBlk; false where that is not shown.
  bool counts_switches;    ///< The two counts of switches hold.
  int64_t system_call;     ///< Number, or -1 when it is blocked outside one (page fault), or running, or not shown.
  uint64_t arguments[6];
  uint64_t stack_pointer;
  uint64_t pc;
  uint64_t voluntary_switches;
  uint64_t involuntary_switches;
  /// The function of the kernel that the thread waits in, only where the system call is not shown; else empty.
  char waits_in[CUNWIND_WAIT_NAME_BYTES];
} cunwind_thread_status;

/// A Swift async function that waits for one that is on the stack.
typedef struct cunwind_async_caller {
  uint64_t address;       ///< Where it goes on: the beginning of that part of it.
  uint32_t frame;         ///< Index of the async function's frame that it, and its callees, wait for.
  uint8_t is_task_start;  ///< 1: the chain ends here, at what ends the task.
} cunwind_async_caller;

typedef struct cunwind_async_callers {
  uint32_t count;
  cunwind_async_caller callers[CUNWIND_MAX_ASYNC_CALLERS];  ///< Of each frame the nearest caller first.
} cunwind_async_callers;

/// Bytes of a path that are kept, with its final 0.
#define CUNWIND_TARGET_BYTES 512

/// The method's result beside the stack: error, cost, size, system call.
typedef struct cunwind_capture_info {
  int error;  ///< errno where the status asks for one, else 0.
  /// The thread was kept from running for at most this long: stop: from the last moment at which it was seen not to
  /// have stopped until after its release; signal: in the handler. Of both captures, when it had to be made twice. 0
  /// for a read.
  uint64_t held_nanoseconds;
  uint64_t capture_nanoseconds;  ///< The whole call, on the caller's time.
  uint64_t stack_bytes;          ///< Bytes of stack copied.
  uint64_t copied_at;            ///< Stop: when the thread stood still, in monotonic nanoseconds. Else 0.
  /// The thread was inside a system call, at the sample (perf) or when it was asked (stop). The next fields hold.
  bool is_in_call;
  int64_t system_call;  ///< Number; -1 where the code before the call does not show it.
  uint64_t arguments[6];
  /// The file behind the first argument, if that is a descriptor, when the call returned; a cut one is left out. Empty for perf.
  char target[CUNWIND_TARGET_BYTES];
} cunwind_capture_info;

/// An image (ELF file mapped in).
typedef struct cunwind_image {
  const char
      *_Nullable path;  ///< Never NULL once filled; empty for the executable's own entry when its path is unknown.
  uint64_t base;        ///< Load bias: address = base + the file's virtual address.
  uint64_t low, high;   ///< Lowest and one past the highest mapped address.
  uint8_t build_id[CUNWIND_MAX_BUILD_ID_BYTES];
  uint8_t build_id_length;  ///< 0: it has none.
} cunwind_image;

/// How an engine is set up. Zero is the default of every field but the first.
typedef struct cunwind_options {
  /// The signal for `cunwind_capture_signal`, 1...64. No handler is installed before it is first used.
  int signal_number;
  /// CUNWIND_MEMORY_ANY, or the only one to try. It holds for all engines of the process.
  cunwind_memory_access memory_access;
  /// The directory with the files of this process, at most 255 bytes. NULL: /proc/self. Tests have their own.
  const char *_Nullable proc_directory;
} cunwind_options;

// ---- Engine ---------------------------------------------------------------------------------------------------------

/// Makes an engine: buffers and module list. Where memory is read by file, one descriptor stays open from then on.
/// Returns NULL with errno: EINVAL, ENOMEM; EPERM where no access to memory works. Async-signal-safe: no.
cunwind_engine *_Nullable cunwind_engine_create_with(const cunwind_options *_Nonnull options);

/// The same with the defaults. Async-signal-safe: no.
cunwind_engine *_Nullable cunwind_engine_create(int signal_number);

/// How memory is read; never CUNWIND_MEMORY_ANY. Async-signal-safe: yes.
cunwind_memory_access cunwind_engine_memory_access(const cunwind_engine *_Nonnull engine);

/// Frees an engine. NULL is fine. Puts back the signal action that it found, if the present one is still ours, no other
/// engine uses it, and no signal of ours is still on its way. Waits 50 ms at most, and only for a helper that a capture had to
/// give up. Async-signal-safe: no.
void cunwind_engine_destroy(cunwind_engine *_Nullable engine);

/// Tries the stop on a short-lived thread of its own and says whether ptrace works here.
/// CUNWIND_OK, CUNWIND_REFUSED (EPERM: seccomp, Yama, already traced), or CUNWIND_FAILED; `error` may be NULL.
/// Under Yama scope 1 each stop names the helper with PR_SET_PTRACER and clears the name afterwards: a tracer that the app
/// had named cannot be read and so is not restored. Takes about 1 ms. Async-signal-safe: no.
cunwind_status cunwind_engine_probe_stop(cunwind_engine *_Nonnull engine, int *_Nullable error);

/// Whether no seccomp filter ends the process for the system call that `cunwind_capture_signal` makes. Under a filter a child
/// process tries it. Async-signal-safe: no.
bool cunwind_may_send_signals(void);

/// Brings the list of images up to date with dlopen and dlclose. Call it before captures: they don't. Takes 0.5 us an
/// image while nothing changed and 4 us when something did (measured), and none of the dynamic linker's locks: the
/// thread to be captured may hold them, as it does in a callback of dl_iterate_phdr(3). Returns how many there are.
/// Pointers from `cunwind_engine_image` hold until the next call. Async-signal-safe: no.
size_t cunwind_engine_refresh_images(cunwind_engine *_Nonnull engine);

/// A number that changes whenever the list of images does. Async-signal-safe: yes.
uint64_t cunwind_engine_image_generation(const cunwind_engine *_Nonnull engine);

/// The number of images beyond the list's 8192, and of those with unreadable headers: frames in them end a
/// stack with CUNWIND_END_BAD_CODE_ADDRESS. Async-signal-safe: yes.
size_t cunwind_engine_omitted_image_count(const cunwind_engine *_Nonnull engine);

/// Copies out image number `index` of the list, which is sorted by address. False when out of range.
/// Async-signal-safe: yes.
bool cunwind_engine_image(const cunwind_engine *_Nonnull engine, size_t index, cunwind_image *_Nonnull image);

/// Lets the calling thread run soon after it wakes, and timed waits of its end in time: for the watchdog's thread, before
/// its first capture. Asks for short slices (sched_setattr(2); Linux 6.12, older ones take no notice) and the least
/// timer slack. No privilege; policy and nice value stay. Returns whether the kernel took the slice: where it does not, the
/// thread is as good as any other. Under a seccomp filter a child process tries the call first. Async-signal-safe: no.
bool cunwind_request_short_slice(void);

/// Moves the calling thread off `processor`, if it is on it and may run on another one; its affinity is the same afterwards.
/// False: it was not moved, for example because a seccomp filter kills for that, or stops have not been probed
/// (cunwind_engine_probe_stop). Costs a comparison, or a move. Async-signal-safe: yes.
bool cunwind_engine_leave_processor(cunwind_engine *_Nonnull engine, int processor);

// ---- Threads --------------------------------------------------------------------------------------------------------

/// Opens the /proc files of a thread of this process, so that each later inspection is one pread a file. Files that are
/// missing are no error. Returns NULL with errno: ESRCH when there is no such thread, EMFILE, ENFILE, ENOMEM. In a process
/// that is not dumpable (PR_SET_DUMPABLE) the system call is not shown. Async-signal-safe: no.
cunwind_thread *_Nullable cunwind_thread_open(cunwind_engine *_Nonnull engine, pid_t tid);

/// Closes them. NULL is fine. Async-signal-safe: no.
void cunwind_thread_close(cunwind_thread *_Nullable thread);

/// Fills `status` with what the kernel says of the thread. CUNWIND_OK or CUNWIND_NO_SUCH_THREAD. Costs about 10 us on the caller's
/// time, nothing on the thread's. Async-signal-safe: yes.
cunwind_status cunwind_thread_inspect(cunwind_thread *_Nonnull thread, cunwind_thread_status *_Nonnull status);

/// Whether a stop makes the system call `number` end with EINTR instead of letting it go on: signal(7)'s list, and the
/// calls of asynchronous I/O. `is_on_socket`: its first argument is a socket. Async-signal-safe: yes.
bool cunwind_call_is_interrupted_by_stop(int64_t number, bool is_on_socket);

/// Whether every system call that waits in the kernel's function `name` goes on after a stop. False for names that are not
/// known. Async-signal-safe: yes.
bool cunwind_wait_restarts_after_stop(const char *_Nonnull name);

// ---- Captures -------------------------------------------------------------------------------------------------------
// Each copies registers and stack into the engine, unwinds the copy after the thread has been let go, and fills `stack`
// (which is left with 0 frames when the status is not CUNWIND_OK). `info` is always filled.

/// Read: for a blocked thread, from SP and PC in /proc. The thread is not touched. While it moves it is read again, within
/// CUNWIND_READ_TIMEOUT_NANOSECONDS. Where a frame needs a register that neither /proc shows nor the code implies, the stack
/// ends incomplete (CUNWIND_END_NO_UNWIND_INFO).
/// CUNWIND_OK, CUNWIND_NOT_BLOCKED, CUNWIND_MOVED, CUNWIND_NOT_SHOWN, CUNWIND_NO_SUCH_THREAD. Async-signal-safe: no.
cunwind_status cunwind_capture_read(cunwind_engine *_Nonnull engine, cunwind_thread *_Nonnull thread,
                                    cunwind_stack *_Nonnull stack, cunwind_capture_info *_Nonnull info);

/// Stop: a helper process that shares our memory seizes the thread with ptrace, copies, lets go.
/// CUNWIND_OK, CUNWIND_REFUSED, CUNWIND_TIMED_OUT (it sleeps uninterruptibly), CUNWIND_NO_SUCH_THREAD, CUNWIND_FAILED
/// (ECANCELED: the helper was killed; EBUSY: the same thread has not stopped since it was last asked, or too many have not). Whatever happens to the helper, the
/// thread runs on. Async-signal-safe: no.
cunwind_status cunwind_capture_stop(cunwind_engine *_Nonnull engine, cunwind_thread *_Nonnull thread,
                                    cunwind_stack *_Nonnull stack, cunwind_capture_info *_Nonnull info);

/// The same, but a thread that does not stop in time stays asked: CUNWIND_PENDING. That is a thread in a system call that
/// computes or copies for long: it stops when the call returns, with the user stack that it had all the while. The helper
/// then copies and releases it at once. Until then, or until `cunwind_cancel_stop`, no other stop of the thread is tried.
/// Async-signal-safe: no.
cunwind_status cunwind_capture_stop_pending(cunwind_engine *_Nonnull engine, cunwind_thread *_Nonnull thread,
                                            cunwind_stack *_Nonnull stack, cunwind_capture_info *_Nonnull info);

/// Takes the result of a pending stop, once. CUNWIND_PENDING: the thread has not stopped yet.
/// CUNWIND_NOT_PENDING: none is pending. Else as `cunwind_capture_stop`. Does not wait, but for the end of a helper that has copied (50 ms at most).
/// Async-signal-safe: no.
cunwind_status cunwind_collect_stop(cunwind_engine *_Nonnull engine, cunwind_thread *_Nonnull thread,
                                    cunwind_stack *_Nonnull stack, cunwind_capture_info *_Nonnull info);

/// Drops the pending stop of a thread, if there is one. The helper releases the thread without copying, and is killed
/// if that takes longer than CUNWIND_RELEASE_TIMEOUT_NANOSECONDS. Async-signal-safe: no.
void cunwind_cancel_stop(cunwind_engine *_Nonnull engine, pid_t tid);

/// Perf: the interrupt of a clock event of perf_event_open(2) copies the user registers and up to 63 KiB of the user stack
/// of a running thread, also inside a system call, which goes on undisturbed. Only a sample inside a system call is used.
/// The first event of the machine takes the kernel 5 to 15 ms to prepare (measured), on the caller's time.
/// CUNWIND_OK, CUNWIND_NOT_IN_CALL, CUNWIND_NOT_SAMPLED, CUNWIND_TIMED_OUT (a call of the process holds the memory map),
/// CUNWIND_REFUSED (kernel.perf_event_paranoid over 1 without CAP_PERFMON; a seccomp filter), CUNWIND_NO_SUCH_THREAD,
/// CUNWIND_FAILED. Async-signal-safe: no.
cunwind_status cunwind_capture_perf(cunwind_engine *_Nonnull engine, cunwind_thread *_Nonnull thread,
                                    cunwind_stack *_Nonnull stack, cunwind_capture_info *_Nonnull info);

/// Signal: the engine's signal is sent to the thread, whose handler copies registers and stack and nothing else.
/// Signals that are not ours go to the action that was there before, with its mask; the default action is carried out.
/// CUNWIND_OK, CUNWIND_SIGNAL_BLOCKED, CUNWIND_TIMED_OUT, CUNWIND_NO_SUCH_THREAD, CUNWIND_FAILED (EBUSY: the app has
/// replaced our handler since, and keeps its own; EAGAIN: the queue of signals is full; ENOSPC: 16 engines have it).
/// A thread that is blocked in a call that is never restarted after a handler (signal(7)) gets EINTR from this: it is
/// for threads on CPU. Async-signal-safe: no.
cunwind_status cunwind_capture_signal(cunwind_engine *_Nonnull engine, cunwind_thread *_Nonnull thread,
                                      cunwind_stack *_Nonnull stack, cunwind_capture_info *_Nonnull info);

// ---- Async callers --------------------------------------------------------------------------------------------------

/// Reads the Swift async callers of the thread whose `stack` was captured last with this engine, by read or by stop.
///
/// The thread is held once more (`by_stop`), or proved to have stayed blocked; nothing is read unless the async
/// functions' frames are still what they were in the copy. A stack without an async function costs one pass over its frames.
/// `info`, from the capture, has what this took added to it.
/// CUNWIND_OK also with no callers; CUNWIND_MOVED when the functions have returned meanwhile; else as the captures.
/// Async-signal-safe: no.
cunwind_status cunwind_read_async_callers(cunwind_engine *_Nonnull engine, cunwind_thread *_Nonnull thread,
                                          bool by_stop, const cunwind_stack *_Nonnull stack,
                                          cunwind_async_callers *_Nonnull callers, cunwind_capture_info *_Nonnull info);

#ifdef __cplusplus
}
#endif

#endif  // CUNWIND_H
