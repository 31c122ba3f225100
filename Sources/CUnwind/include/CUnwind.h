// CUnwind captures the stacks of threads of this process: it copies a thread's registers and stack by the method that
// the caller chooses (read, stop, signal), and unwinds the copy.
//
// Threads. An engine and everything made from it belong to one thread at a time (the watchdog); two engines are
// independent of each other. No function here may be called on the thread that is being captured.
//
// Memory. The `_create` and `_open` functions allocate everything that a capture needs (about 2 MiB per engine), except
// for the buffer of 1 MiB that the first capture by signal allocates. While a thread is stopped, and in the signal
// handler, nothing allocates, takes a lock, or blocks. A read of memory that may be unmapped returns an error if a page
// is missing (`cunwind_memory_access`).
//
// fork(2). A child has a copy of the engine that it must not use; it may destroy it.
//
// Errors. Functions that can fail return a `cunwind_status`; `_create` and `_open` return NULL and set errno.

#pragma once

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

typedef enum cunwind_status {
  CUNWIND_OK = 0,
  CUNWIND_NO_SUCH_THREAD,  ///< The thread has ended, or belongs to another process.
  CUNWIND_NOT_BLOCKED,     ///< Read: the thread is on CPU or runnable.
  CUNWIND_MOVED,           ///< Read: the thread ran during the read; the copy was discarded.
  CUNWIND_REFUSED,         ///< The kernel refused (`error`: EPERM, EACCES, ENOSYS; EBUSY: another process traces it).
  CUNWIND_TIMED_OUT,       ///< The thread did not stop, or its handler did not run, within the bound.
  CUNWIND_NOT_SHOWN,       ///< Read: /proc lacks the files that a read needs.
  CUNWIND_SIGNAL_BLOCKED,  ///< Signal: the thread blocks the signal; none was sent.
  CUNWIND_NOT_PENDING,     ///< No stop of the thread is pending.
  CUNWIND_PENDING,         ///< Stop: the thread has not stopped yet. Its stack is captured when it does.
  CUNWIND_FAILED           ///< Any other failure; `error` is the errno.
} cunwind_status;

/// Why a stack is not complete.
typedef enum cunwind_end {
  CUNWIND_END_COMPLETE = 0,      ///< It reached the thread's first function.
  CUNWIND_END_NO_UNWIND_INFO,    ///< A function has no CFI, and neither the call-site scan nor its frame pointer helps.
  CUNWIND_END_BAD_MEMORY,        ///< A needed word is not mapped.
  CUNWIND_END_NOT_IN_COPY,       ///< A needed word of the stack is outside the copy.
  CUNWIND_END_LOOP,              ///< The stack pointer did not move outwards.
  CUNWIND_END_BAD_CODE_ADDRESS,  ///< A return address is not in the code of any image, and follows no call.
  CUNWIND_END_UNKNOWN_CODE,      ///< It reached an end, but crossed code that is in no image: frames may be missing.
  CUNWIND_END_TOO_DEEP,          ///< The stack has more frames than the bound on one unwind.
  CUNWIND_END_TOO_LONG           ///< The unwind took longer than its bound (50 ms).
} cunwind_end;

typedef enum cunwind_frame_source {
  CUNWIND_FRAME_INITIAL = 0,     ///< The registers themselves.
  CUNWIND_FRAME_CFI,             ///< Call frame information.
  CUNWIND_FRAME_CODE,            ///< The function's own code up to its return, or the only return address there is.
  CUNWIND_FRAME_CALL_SITE_SCAN,  ///< The next word outwards that follows a call instruction.
  CUNWIND_FRAME_POINTER          ///< The frame-pointer chain.
} cunwind_frame_source;

/// How this process reads its own memory where a page may be missing. All give the same bytes, and none can fault.
typedef enum cunwind_memory_access {
  CUNWIND_MEMORY_ANY = 0,  ///< The first of the following that works.
  CUNWIND_MEMORY_CALL,     ///< process_vm_readv(2).
  CUNWIND_MEMORY_FILE,     ///< /proc/self/mem. Also reads pages without read permission.
  CUNWIND_MEMORY_PIPE      ///< The kernel copies through a pipe: two calls per page, two descriptors during a read.
} cunwind_memory_access;

typedef struct cunwind_engine cunwind_engine;
typedef struct cunwind_thread cunwind_thread;

/// One frame, innermost first.
typedef struct cunwind_frame {
  uint64_t address;         ///< The frame's PC. A return address unless `is_exact`.
  uint64_t stack_pointer;   ///< The stack pointer inside the frame (its callee's CFA).
  uint8_t is_exact;         ///< 1: the PC itself, not a return address (innermost frame, or interrupted by a signal).
  uint8_t is_signal_frame;  ///< 1: the kernel's signal trampoline.
  uint8_t source;           ///< A `cunwind_frame_source`.
  uint8_t is_uncertain;     ///< 1: this frame or one further in is a guess, by a scan, a frame pointer or unknown code.
} cunwind_frame;

/// The most frames of one stack. If a stack is deeper, its innermost and outermost frames are kept, half of each.
#define CUNWIND_MAX_FRAMES 512

typedef struct cunwind_stack {
  uint32_t frame_count;  ///< The number of frames in `frames`.
  uint32_t omitted_at;   ///< A limit left frames out before this index of `frames`; 0 if none was left out.
  uint8_t end;           ///< A `cunwind_end`.
  cunwind_frame frames[CUNWIND_MAX_FRAMES];
} cunwind_stack;

/// The size of the name of a kernel function (wchan), in bytes. A longer name is cut.
#define CUNWIND_WAIT_NAME_BYTES 64

/// The files of /proc/<tid> that show a thread, as a set; an inspection reads them in this order.
typedef enum cunwind_thread_file {
  CUNWIND_THREAD_SCHEDSTAT = 1,
  CUNWIND_THREAD_STATUS = 2,
  CUNWIND_THREAD_STAT = 4,
  CUNWIND_THREAD_SYSCALL = 8,
  CUNWIND_THREAD_WCHAN = 16,
  CUNWIND_ALL_THREAD_FILES = 31,
  CUNWIND_THREAD_BRIEFLY = 32,  ///< The files are closed soon: they may take a descriptor that is left to the app.
  CUNWIND_THREAD_KEPT = 64      ///< They stay open for long: at most 64 in a process.
} cunwind_thread_file;

/// The status of a thread, as the kernel shows it; what it does not show is 0. Times and counts are totals.
typedef struct cunwind_thread_status {
  char state;                ///< The letter of proc(5): R, S, D, T, t, Z, X, I.
  bool shows_system_call;    ///< /proc shows the system call. If not, `is_blocked` is false and has no meaning.
  bool is_blocked;           ///< In a system call or a fault, and off CPU: `stack_pointer` and `pc` are valid.
  bool counts_switches;      ///< The two counts of switches are valid.
  bool shows_stat;           ///< The nice value, faults and ticks are valid.
  int32_t nice;              ///< -20 to 19.
  uint64_t blocked_signals;  ///< SigBlk: bit n - 1 is signal n.
  int64_t system_call;       ///< The number; -1 if blocked outside a call (page fault), running, or not shown.
  uint64_t arguments[6];
  uint64_t stack_pointer;
  uint64_t pc;
  uint64_t voluntary_switches;
  uint64_t involuntary_switches;
  uint64_t run_queue;  ///< The time runnable without a CPU, in nanoseconds; grows when a wait for a CPU ends.
  uint64_t slices;     ///< How often the thread has got a CPU, counted before it runs. 0: the kernel does not count.
  uint64_t minor_faults, major_faults;  ///< Page faults without and with disk access.
  uint64_t user_ticks, system_ticks;    ///< CPU time in user mode and in the kernel, in clock ticks.
  /// The kernel function in which the thread waits; empty if it waits in none.
  char waits_in[CUNWIND_WAIT_NAME_BYTES];
} cunwind_thread_status;

/// A Swift async function that awaits a function on the stack.
typedef struct cunwind_async_caller {
  uint64_t address;       ///< The address at which it resumes: the beginning of that part of the function.
  uint32_t frame;         ///< The index of the async function's frame for which it, and its callees, wait.
  uint8_t is_task_start;  ///< 1: the chain ends here, at the function that ends the task.
} cunwind_async_caller;

/// The most async callers that are read for one stack.
#define CUNWIND_MAX_ASYNC_CALLERS 128

typedef struct cunwind_async_callers {
  uint32_t count;
  cunwind_async_caller callers[CUNWIND_MAX_ASYNC_CALLERS];  ///< For each frame, the nearest caller first.
} cunwind_async_callers;

/// The size of a path, in bytes, with its final 0.
#define CUNWIND_TARGET_BYTES 512

/// The result of a capture beside the stack: error, cost, size, system call.
typedef struct cunwind_capture_info {
  int error;  ///< The errno of statuses that have one, else 0.
  /// The most time for which the thread was kept from running. Stop: from the last check that found it not stopped
  /// until its release. Signal: the time in the handler. The sum of both captures if there were two; 0: a read.
  uint64_t held_nanoseconds;
  uint64_t capture_nanoseconds;  ///< The duration of the whole call, on the caller's thread.
  uint64_t stack_bytes;          ///< The number of stack bytes copied.
  /// Stop: when the thread was stopped, in monotonic nanoseconds. Else: a time by which the stack was copied; 0: none.
  uint64_t copied_at;
  /// The thread was in a system call when it was asked to stop: the next fields are valid.
  bool is_in_call;
  int64_t system_call;
  uint64_t arguments[6];
  /// The file behind the first argument, if that is a descriptor, when the call returned. Empty if the path is too long.
  char target[CUNWIND_TARGET_BYTES];
  bool is_as_inspected;  ///< Read: the thread has not run since its last inspection.
} cunwind_capture_info;

/// The longest build ID that is kept, in bytes. SHA-1, the linkers' default, has 20.
#define CUNWIND_MAX_BUILD_ID_BYTES 32

/// The bytes of each segment that tell an image without a build ID from another (16 KiB): symbols and their places.
#define CUNWIND_HASHED_BYTES (16 * 1024)

/// An image (a mapped ELF file).
typedef struct cunwind_image {
  const char *_Nullable path;  ///< Never NULL once filled; empty for the executable if its path is unknown.
  uint64_t base;               ///< The load bias: address = base + the file's virtual address.
  uint64_t low, high;          ///< The lowest mapped address, and the first one after the highest.
  uint8_t build_id[CUNWIND_MAX_BUILD_ID_BYTES];
  uint8_t build_id_length;  ///< 0: the image has no build ID.
  /// Of an image without a build ID, FNV-1a (64 bits, word by word) of what is mapped and equal in the file: of each
  /// segment that is not writable the first CUNWIND_HASHED_BYTES, without the ELF header. 0: it has a build ID.
  uint64_t content_hash;
} cunwind_image;

/// The options of an engine. Zero is the default of every field except the first.
typedef struct cunwind_options {
  /// The signal for `cunwind_capture_signal`, 1...64. The first such capture installs the handler.
  int signal_number;
  /// A signal that is sent instead to threads that do not block it, 1...64; 0: none. One that is ignored by default, such
  /// as SIGURG, does no harm where it is still pending when execve(2) removes the handler.
  int harmless_signal_number;
  /// CUNWIND_MEMORY_ANY, or the only access to try. It applies to all engines of the process.
  cunwind_memory_access memory_access;
} cunwind_options;

#define CUNWIND_SCOPE_MAGIC 0x65706f6353574c53ull

/// A synchronous scope of a context, on the stack or the heap of its thread.
typedef struct cunwind_context_scope {
  uint64_t magic;    ///< CUNWIND_SCOPE_MAGIC.
  uint64_t payload;  ///< The address of the payload.
  uint64_t bound;    ///< The address of the payload that was bound as a task-local value at the entry; or 0.
} cunwind_context_scope;

/// Where the parts of a context are, in bytes from a thread's thread pointer. All zero: nothing is known.
typedef struct cunwind_context_layout {
  bool knows_tasks;         ///< `task` is valid, and tasks have the expected layout.
  bool knows_task_names;    ///< So have their names.
  bool knows_plain_locals;  ///< `plain_locals` is valid.
  bool knows_scopes;        ///< `scope` is valid.
  bool knows_record;        ///< `record_module` and `record` are valid.
  bool knows_pointers;      ///< `robust_list` is valid. If not, only a capture by signal reads a context.
  int64_t robust_list;      ///< The list of robust futexes.
  int64_t task;             ///< The address of the current task.
  int64_t plain_locals;     ///< The address of the task-local values outside of tasks.
  int64_t scope;            ///< The address of the innermost `cunwind_context_scope`.
  uint64_t record_module;   ///< The module id of the variable with the address of OpenTelemetry's record, from 1.
  uint64_t record;          ///< The variable's place in the module's TLS block, in bytes.
  uint64_t key;             ///< The key of the task-local value that is the context.
  uint64_t payload_offset;  ///< From the object that is its value to the payload.
} cunwind_context_layout;

typedef enum cunwind_context_status {
  CUNWIND_CONTEXT_NOT_READ = 0,  ///< The capture's method does not hold the thread, or nothing is known of the layout.
  CUNWIND_CONTEXT_TAKEN,         ///< Read while the thread was stopped or blocked. Each part may be absent.
  CUNWIND_CONTEXT_MOVED,         ///< The thread ran before its context was read.
  CUNWIND_CONTEXT_NO_THREAD_POINTER  ///< The kernel does not tell the thread pointer.
} cunwind_context_status;

/// The size of a context that the app publishes, in bytes: a fixed block, checked by its reader.
#define CUNWIND_CONTEXT_PAYLOAD_BYTES 1024
/// The most bytes of a task's name that are read. A longer name is cut.
#define CUNWIND_TASK_NAME_BYTES 128
/// The most bytes of OpenTelemetry's thread context record that are read: its recommended limit.
#define CUNWIND_THREAD_RECORD_BYTES 640

typedef struct cunwind_context {
  uint8_t status;  ///< A `cunwind_context_status`.
  bool has_task;   ///< A Swift task was running on the thread.
  bool task_name_is_cut;
  uint16_t task_name_length;  ///< 0: the task has no name.
  uint16_t payload_length;    ///< 0: the app has published no context.
  uint16_t record_length;     ///< 0: there is no valid record of OpenTelemetry.
  uint64_t task_id;
  uint8_t task_name[CUNWIND_TASK_NAME_BYTES];
  uint8_t payload[CUNWIND_CONTEXT_PAYLOAD_BYTES];
  uint8_t record[CUNWIND_THREAD_RECORD_BYTES];
} cunwind_context;

// ---- Engine ---------------------------------------------------------------------------------------------------------

/// Creates an engine: buffers and module list. Loads libunwind, unless the environment variable STALLWATCH_UNWINDER is
/// `builtin`. If memory is read by file, one descriptor stays open from then on. Returns NULL with errno: EINVAL, ENOMEM,
/// or EPERM if no access to memory works.
cunwind_engine *_Nullable cunwind_engine_create(const cunwind_options *_Nonnull options);

/// Returns how memory is read; CUNWIND_MEMORY_ANY only before there is an engine. Async-signal-safe: yes.
cunwind_memory_access cunwind_memory_access_in_use(void);

/// Copies `length` bytes at `address` of this process. Memory that is not mapped is an error, not a signal. Needs no
/// engine. Returns whether all of it could be read.
bool cunwind_read_memory(uint64_t address, void *_Nonnull to, size_t length);

/// Frees an engine; does nothing for NULL. Restores the signal action that it found, if the current one is still ours,
/// no other engine uses it, and none of our signals is pending. Waits at most 50 ms, only for a helper that is late.
void cunwind_engine_destroy(cunwind_engine *_Nullable engine);

/// Tries a stop of the thread `tid`, which is not the app's, to find out whether ptrace works. Returns CUNWIND_OK,
/// CUNWIND_REFUSED (EPERM: seccomp, Yama; EBUSY: a debugger traces every new thread) or CUNWIND_FAILED; `error` may be
/// NULL. Under Yama scope 1 each stop names the helper with PR_SET_PTRACER and clears the name afterwards. The kernel
/// does not show a tracer that the app had named, so it is not restored. Takes about 1 ms.
cunwind_status cunwind_engine_probe_stop(cunwind_engine *_Nonnull engine, int tid, int *_Nullable error);

/// Returns false if a seccomp filter would end the process for cunwind_capture_signal's call, which a child process
/// tries, or if the process has added a filter since its first question.
bool cunwind_may_send_signals(void);

/// Releases what earlier captures have left, and chooses anew how memory is read if the app has added a filter for system
/// calls. Call it before each capture. Async-signal-safe: no.
void cunwind_engine_prepare(cunwind_engine *_Nonnull engine);

/// Prepares a capture, updates the list of images after dlopen and dlclose, and returns its length. A capture updates the
/// list when it has its copy. Costs 0.5 us per image if nothing changed, else 4 us (measured), without a build ID some
/// more. Takes no lock of the dynamic linker: the thread to be captured may hold it, for example in a callback of
/// dl_iterate_phdr(3). Pointers from `cunwind_engine_image` are valid until the next call or capture.
size_t cunwind_engine_refresh_images(cunwind_engine *_Nonnull engine);

/// Returns a number that changes whenever the list of images changes. Async-signal-safe: yes.
uint64_t cunwind_engine_image_generation(const cunwind_engine *_Nonnull engine);

/// Copies image `index` of the list, sorted by address. Returns false if there is none. Async-signal-safe: yes.
bool cunwind_engine_image(const cunwind_engine *_Nonnull engine, size_t index, cunwind_image *_Nonnull image);

/// Makes the calling thread run soon after it wakes, and its timed waits end on time. The watchdog's thread calls it
/// before its first capture. Requests short slices (sched_setattr(2); ignored before Linux 6.12) and the least timer
/// slack. Needs no privilege, and keeps policy and nice value. Returns whether the kernel accepted the slice; if not,
/// the thread runs like any other. Under a seccomp filter a child process tries the call first.
bool cunwind_request_short_slice(void);

/// Gives the calling thread its own slice and timer slack back, or again those that it has asked for: a thread that it
/// makes inherits them, and so does each thread and process that this one makes.
void cunwind_suspend_short_slice(bool is_suspended);

/// The most bytes of .debug_frame that are kept, of all images (2 MiB). A step reads a part of each entry: 0.2 ms for all.
#define CUNWIND_MAX_DEBUG_FRAME_BYTES (2 * 1024 * 1024)

/// Lets all engines use the section .debug_frame of the file of images with the build ID or content hash of `image`, for
/// functions that the tables in memory lack. Copies the section, and keeps it for good. Returns false beyond the limit or
/// without memory. Any thread may call it, one at a time.
bool cunwind_add_debug_frame(const cunwind_image *_Nonnull image, const void *_Nonnull section, size_t size);

typedef struct cunwind_unwinder_status {
  const char *_Nonnull name;     ///< "libunwind 1.6.2", or "built-in".
  const char *_Nullable reason;  ///< Why it is not libunwind; NULL if it is.
} cunwind_unwinder_status;

/// Returns which unwinder makes the steps. The strings are valid as long as the engine. Async-signal-safe: yes.
cunwind_unwinder_status cunwind_engine_unwinder(const cunwind_engine *_Nonnull engine);

// ---- Threads --------------------------------------------------------------------------------------------------------

/// Opens /proc files of a thread of this process, a set of `cunwind_thread_file`; later inspections need one pread per
/// file. `directory` has them, at most 255 bytes; NULL: /proc/self/task/<tid>. A missing file is not an error. Returns NULL
/// with errno: ESRCH if there is no such thread, EMFILE, ENFILE, ENOMEM. If the process is not dumpable (PR_SET_DUMPABLE),
/// /proc does not show system calls.
cunwind_thread *_Nullable cunwind_thread_open(pid_t tid, unsigned files, const char *_Nullable directory);

/// Closes the files of a thread; does nothing for NULL.
void cunwind_thread_close(cunwind_thread *_Nullable thread);

/// Reads the status of a thread from its open files, and keeps it for the next capture by read. Returns CUNWIND_OK or
/// CUNWIND_NO_SUCH_THREAD. Costs the caller about 10 us and the thread nothing. Opens files again that stay open for
/// long and that the program has closed.
cunwind_status cunwind_thread_inspect(cunwind_thread *_Nonnull thread, cunwind_thread_status *_Nonnull status);

/// Stores the system call, its arguments, SP and PC of the text of /proc/<pid>/syscall. Async-signal-safe: yes.
void cunwind_parse_system_call(const char *_Nonnull text, cunwind_thread_status *_Nonnull status);

/// Returns whether a stop makes the system call `number` return EINTR, or less than it would: the list of signal(7),
/// the calls of asynchronous I/O, writes and fallocate(2). `is_on_socket`: its first argument is a socket.
/// Async-signal-safe: yes.
bool cunwind_call_is_interrupted_by_stop(int64_t number, bool is_on_socket);

/// Returns whether every system call that waits in the kernel function `name` resumes after a stop. False for unknown
/// names. Async-signal-safe: yes.
bool cunwind_wait_restarts_after_stop(const char *_Nonnull name);

/// Returns the process that traces thread `tid` of this process; 0 if there is none or /proc does not show it.
pid_t cunwind_tracer(pid_t tid);

/// Returns whether `pid` is the helper of a capture, of any engine: a child that sends no signal at its end.
bool cunwind_is_stop_helper(pid_t pid);

// ---- Captures -------------------------------------------------------------------------------------------------------
// Each copies registers and stack into the engine, and unwinds the copy after the thread has been released. `stack` has
// 0 frames if the status is not CUNWIND_OK. `info` is always filled.

/// The most bytes of a stack that are copied (1 MiB). A larger stack is cut, and the gap is marked.
#define CUNWIND_MAX_STACK_BYTES (1024 * 1024)
/// How long a read is retried, in nanoseconds (100 us). A thread takes less time from one wait for a fast disk to the
/// next: a repeated fsync(2) takes 35 us, of which it waits 15 us (measured). One try takes 5 us.
#define CUNWIND_READ_TIMEOUT_NANOSECONDS 100000ull

/// Read: captures a blocked thread from SP and PC in /proc, without touching it. Begins with those of the thread's last
/// inspection; if the thread has moved, it is read again, until CUNWIND_READ_TIMEOUT_NANOSECONDS have passed. If a frame needs a register that neither /proc shows nor the
/// code implies, the stack is incomplete (CUNWIND_END_NO_UNWIND_INFO). Returns CUNWIND_OK, CUNWIND_NOT_BLOCKED,
/// CUNWIND_MOVED, CUNWIND_NOT_SHOWN or CUNWIND_NO_SUCH_THREAD.
cunwind_status cunwind_capture_read(cunwind_engine *_Nonnull engine, cunwind_thread *_Nonnull thread,
                                    cunwind_stack *_Nonnull stack, cunwind_capture_info *_Nonnull info);

/// The longest wait for a thread to stop, in nanoseconds (120 ms). After that, the capture fails or stays pending. Only
/// a thread that gets no CPU or stays in the kernel takes so long, and the wait costs it nothing. A cgroup's quota can
/// keep a thread off the CPU for one period: 100 ms by default (Documentation/scheduler/sched-bwc.rst).
#define CUNWIND_STOP_TIMEOUT_NANOSECONDS 120000000ull
/// How much longer the helper waits alone for a thread that was asked to stop, in nanoseconds (2 s), so that the
/// request makes no call of the thread return EINTR. Until then the same thread cannot be stopped again.
#define CUNWIND_RELEASE_TIMEOUT_NANOSECONDS 2000000000ull
/// How long a stop waits for another engine's, in nanoseconds (2 ms). It takes 0.1 ms for a thread not in the kernel.
#define CUNWIND_BUSY_TIMEOUT_NANOSECONDS 2000000ull

/// Stop: a helper process that shares our memory seizes the thread with ptrace, copies its stack, and releases it.
/// Whatever happens to the helper, the thread continues. Returns CUNWIND_OK, CUNWIND_REFUSED (EBUSY: another process
/// traces this thread; the system permits ptrace), CUNWIND_TIMED_OUT (the thread sleeps uninterruptibly),
/// CUNWIND_NO_SUCH_THREAD, or CUNWIND_FAILED (ECANCELED: the helper was killed; EBUSY: the thread has not stopped since
/// the last request, or since one of another engine, or too many threads have not).
cunwind_status cunwind_capture_stop(cunwind_engine *_Nonnull engine, cunwind_thread *_Nonnull thread,
                                    cunwind_stack *_Nonnull stack, cunwind_capture_info *_Nonnull info);

/// How long a capture stays pending, in nanoseconds (10 minutes): as long as a stall's samples last.
#define CUNWIND_PENDING_TIMEOUT_NANOSECONDS 600000000000ull
/// The most threads that have been asked to stop and have not stopped yet. Beyond that, a stop fails with EBUSY.
#define CUNWIND_MAX_PENDING_STOPS 4

/// Stop: the same, but if the thread does not stop in time, the request stays: CUNWIND_PENDING. Such a thread is in a
/// system call that computes or copies for long. It stops when the call returns, with the same user stack; the helper
/// then copies the stack and releases the thread at once. Until then, or until `cunwind_cancel_stop`, the thread gets
/// no other stop request.
cunwind_status cunwind_capture_stop_pending(cunwind_engine *_Nonnull engine, cunwind_thread *_Nonnull thread,
                                            cunwind_stack *_Nonnull stack, cunwind_capture_info *_Nonnull info);

/// Takes the result of a pending stop, once. Returns CUNWIND_PENDING if the thread has not stopped yet,
/// CUNWIND_NOT_PENDING if no stop is pending, else the statuses of `cunwind_capture_stop`. Waits only for the end of a
/// helper that has copied the stack, at most 50 ms.
cunwind_status cunwind_collect_stop(cunwind_engine *_Nonnull engine, cunwind_thread *_Nonnull thread,
                                    cunwind_stack *_Nonnull stack, cunwind_capture_info *_Nonnull info);

/// Drops the pending stop of a thread, if there is one. The helper releases the thread without copying, and is killed
/// if that takes longer than CUNWIND_RELEASE_TIMEOUT_NANOSECONDS.
void cunwind_cancel_stop(cunwind_engine *_Nonnull engine, pid_t tid);

/// The longest wait for the signal handler to run, in nanoseconds (120 ms): a cgroup's period, as for a stop.
#define CUNWIND_SIGNAL_TIMEOUT_NANOSECONDS 120000000ull

/// Signal: sends the engine's signal to the thread, whose handler copies registers and stack and does nothing else.
/// Signals of the app go to the previous action, with its mask; a default action is carried out. Returns CUNWIND_OK,
/// CUNWIND_SIGNAL_BLOCKED, CUNWIND_TIMED_OUT, CUNWIND_NO_SUCH_THREAD, or CUNWIND_FAILED (EBUSY: the app has replaced
/// our handler and keeps its own; EAGAIN: the queue of signals is full; ENOSPC: 16 engines use signals already). Use it
/// only for threads on CPU: a call that is never restarted after a handler (signal(7)) returns EINTR.
cunwind_status cunwind_capture_signal(cunwind_engine *_Nonnull engine, cunwind_thread *_Nonnull thread,
                                      cunwind_stack *_Nonnull stack, cunwind_capture_info *_Nonnull info);

// ---- Async callers --------------------------------------------------------------------------------------------------

/// Reads the Swift async callers of the thread whose `stack` this engine captured last, by read or by stop.
///
/// Stops the thread again (`by_stop`), or proves that it stayed blocked. Reads nothing if the frames of the async
/// functions differ from the copy. If the stack has no async function, the cost is one pass over its frames. Adds the
/// cost to the capture's `info`. Returns CUNWIND_OK, also without callers, CUNWIND_MOVED if the functions have returned
/// meanwhile, else the statuses of the captures.
cunwind_status cunwind_read_async_callers(cunwind_engine *_Nonnull engine, cunwind_thread *_Nonnull thread,
                                          bool by_stop, const cunwind_stack *_Nonnull stack,
                                          cunwind_async_callers *_Nonnull callers, cunwind_capture_info *_Nonnull info);

// ---- Contexts -------------------------------------------------------------------------------------------------------

/// Returns the context of the thread that the engine captured last, copied in the same stop or the same wait as its
/// stack. It is valid until the next capture. Async-signal-safe: yes.
const cunwind_context *_Nonnull cunwind_engine_context(const cunwind_engine *_Nonnull engine);

/// The most task-local values, of the task and its parents, among which a context is looked for.
#define CUNWIND_MAX_TASK_LOCALS 64
/// The most status records of a task, such as cancellation handlers, among which its name is looked for.
#define CUNWIND_MAX_TASK_RECORDS 64

/// Lets engines read contexts from the next capture on. `layout` is never freed; NULL ends it. Async-signal-safe: yes.
void cunwind_publish_context_layout(const cunwind_context_layout *_Nullable layout);

/// Reads the context of the calling thread: for the calibration. Async-signal-safe: yes.
void cunwind_context_of_this_thread(const cunwind_context_layout *_Nonnull layout, cunwind_context *_Nonnull context);

/// Stores the distance of the calling thread's list of robust futexes from its thread pointer. False: the kernel does
/// not tell, or a seccomp filter ends programs that ask.
bool cunwind_robust_list_offset(int64_t *_Nonnull offset);

/// Returns the distance of a thread-local variable from the calling thread's thread pointer. Async-signal-safe: yes.
int64_t cunwind_thread_offset(const void *_Nonnull address);

/// Looks through the calling thread's thread-local variables, of all images, for words with the value `value`; if `key`
/// is not 0, for words that lead to a list of task-local values that begins with that key and value; if `leads`, for
/// addresses of memory that begins with `value`. Stores their distances from the thread pointer, at most `capacity`, and
/// returns their number. Takes the dynamic linker's lock.
size_t cunwind_find_in_thread_storage(uint64_t value, bool leads, uint64_t key, int64_t *_Nonnull offsets,
                                      size_t capacity);

/// The bytes from the thread pointer to the address of the thread's vector of TLS blocks (glibc: tcbhead_t).
#if defined(__x86_64__)
#define CUNWIND_DTV_OFFSET 8
#else
#define CUNWIND_DTV_OFFSET 0
#endif

/// Finds the calling thread's TLS block with the variable at `address`: its module id, and the variable's place. False:
/// there is none, or the thread's vector of blocks is not as expected. Takes the dynamic linker's lock.
bool cunwind_thread_storage_place(const void *_Nonnull address, uint64_t *_Nonnull module, uint64_t *_Nonnull offset);

// ---- Tasks ----------------------------------------------------------------------------------------------------------

/// Copies `length` bytes at `address` to `buffer`, and stores the addresses, multiples of 16, at which the copy has
/// `word`, at most `capacity`. Returns their number. It ends at the first page that is not mapped. No other thread is
/// touched.
size_t cunwind_find_words(uint64_t address, size_t length, uint64_t word, void *_Nonnull buffer,
                          uint64_t *_Nonnull found, size_t capacity);

/// Returns the thread pointer of a thread of this process, whose list of robust futexes is `robust_list` bytes from it;
/// 0 if the kernel does not tell, or a seccomp filter ends programs that ask. Costs the thread nothing.
uint64_t cunwind_thread_pointer(int64_t robust_list, pid_t tid);

#ifdef __cplusplus
}
#endif
