// CLinux: functions of glibc and of the Swift runtime that Swift's own modules do not show.

#pragma once

#if !defined(__linux__)
#error "StallWatch supports Linux on x86-64 and aarch64 only: build it for one of these."
#endif

// clang-format off
#include <features.h>
#if !defined(__GLIBC__)
#error "StallWatch needs glibc, whose locks it reads: build for Linux with glibc, and link Swift statically with --static-swift-stdlib if need be. The Static Linux SDK (Musl) is not supported."
#endif
// clang-format on

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A number that no other thread of this process has or had, and not 0. Async-signal-safe: yes.
///
/// pthread_self(3) is no such number: a new thread may have that of one that has ended.
uint64_t clinux_thread_serial(void);

/// The calling thread's kernel id (gettid(2)). A system call. Async-signal-safe: yes.
pid_t clinux_gettid(void);

/// A number of this process that no child of fork(2) has, and never 0: a child may have its parent's id, in a PID
/// namespace of its own. Async-signal-safe: yes.
uint32_t clinux_process_number(void);

/// Whether this process has another number than that one, as a child of fork(2) has; as a rule without a system call.
/// False in a child of vfork(2), and in one under an emulator that ignores MADV_WIPEONFORK. Async-signal-safe: yes.
bool clinux_is_forked_from(uint32_t number);

/// The nanoseconds of CLOCK_MONOTONIC by the system call itself, to compare clock_gettime(3) with, which a library or a
/// sandbox may replace; 0 if the system refuses it. Async-signal-safe: yes.
uint64_t clinux_kernel_clock(void);

/// Names the calling thread; a longer name is cut to the kernel's 15 bytes. Async-signal-safe: yes.
void clinux_name_this_thread(const char *_Nonnull name);

/// Returns how many processors a thread may run on (sched_getaffinity(2)); 0: it is not known. Async-signal-safe: yes.
int clinux_usable_processors(pid_t thread);

/// Returns on how many of `count` processors, of which one may be there several times, a thread may run; 0: it is not
/// known. One system call. Async-signal-safe: yes.
size_t clinux_count_usable(pid_t thread, const int *_Nonnull processors, size_t count);

/// Starts a thread that runs `body` with `context`, and returns 0 or an error number. Async-signal-safe: no.
///
/// Its policy is SCHED_OTHER, its stack has `stack_bytes` beside thread-local variables, its timers have the kernel's
/// usual slack, it rounds and traps as C does by default (FE_DFL_ENV), and it may run where the thread `like` may; with 0, or
/// a thread that has ended, where the process's first thread or the calling one may. It begins with the signals blocked
/// that apps use; those of crashes, traps and profilers are as in the calling thread.
///
/// The first call takes the dynamic linker's lock: the library with this code is never unloaded from then on.
int clinux_start_thread(pthread_t *_Nonnull thread, size_t stack_bytes, pid_t like,
                        void *_Nullable (*_Nonnull body)(void *_Nullable), void *_Nullable context);

/// Gives the calling thread's heap room for 480 KiB, nearly all of it untouched. Async-signal-safe: no.
///
/// A heap of glibc grows by mprotect(2), for a thread's first allocations a page at a time, which waits while another
/// thread is in munmap(2), for as long as that takes. Memory that is given back stays writable.
void clinux_grow_heap(void);

/// Whether an address is in the first function of the threads that clinux_start_thread started. Async-signal-safe: yes.
bool clinux_begins_thread(uint64_t address);

/// Whether the limits on addresses, data and locked memory and the kernel's accounting allow `bytes` more now; false if a
/// limited process cannot see what it has. Maps nothing.
bool clinux_has_room(size_t bytes);

/// Whether RLIMIT_AS leaves the process fewer than `bytes` addresses.
bool clinux_is_short_of_addresses(size_t bytes);

/// Returns the descriptor that is readable while a run loop's main queue has work, or -1 if libdispatch has none.
int clinux_main_queue_descriptor(void);

/// Makes glibc create no further heap, of 64 MiB of addresses, for a new thread's malloc(3). Returns whether it does.
bool clinux_share_heap(void);

/// Unblocks every signal in the calling thread. Returns 0 or an error number. Async-signal-safe: yes.
int clinux_unblock_all_signals(void);

/// How long clinux_say waits for room, in milliseconds.
#define CLINUX_SAY_MILLISECONDS 100

/// Writes a line to standard error, if that is still the file of the program's start, and returns whether it did.
///
/// Waits 100 ms at most for a reader, and raises no signal. Of a line that is longer than PIPE_BUF the rest is left out.
/// Async-signal-safe: yes.
bool clinux_say(const char *_Nonnull line, size_t length);

/// Waits for `semaphore` until CLOCK_MONOTONIC reaches `deadline` nanoseconds; UINT64_MAX waits without end. A signal
/// does not end the wait. Returns 0 when it was posted, else ETIMEDOUT.
int clinux_semaphore_wait_until(sem_t *_Nonnull semaphore, uint64_t deadline);

/// The size in bytes of the function at `address`, if its image exports it; else 0. Takes the dynamic linker's lock.
size_t clinux_function_size(const void *_Nonnull address);

/// The path of the image with `address` as the dynamic linker knows it; NULL if there is none. Valid while the image is
/// loaded. Takes the dynamic linker's lock.
const char *_Nullable clinux_image_path(const void *_Nonnull address);

// Callbacks of a CFRunLoop that store their return addresses, 8 bytes, at `note`.
void clinux_note_source(void *_Nullable note);
void clinux_note_timer(const void *_Nullable timer, void *_Nullable note);
void clinux_note_observer(const void *_Nullable observer, unsigned long activity, void *_Nullable note);

/// Lets a CFRunLoop perform the only such block in `mode`; returns where the block stores its return address.
const uint64_t *_Nonnull clinux_perform_noting_block(void *_Nonnull loop, const void *_Nonnull mode);

/// Whether `code` lies in the executable; then `base` receives its load bias. Takes the dynamic linker's lock.
bool clinux_executable_base(const void *_Nonnull code, uint64_t *_Nonnull base);

/// The address of the executable's program headers (getauxval(3), AT_PHDR). Async-signal-safe: yes.
uint64_t clinux_program_headers(void);

/// Prepares clinux_barrier_in_all_threads(). Returns whether it works here: Linux 4.14, and no seccomp filter against
/// it. With several threads it can take some 10 ms the first time. Async-signal-safe: yes.
bool clinux_prepare_barrier_in_all_threads(void);

/// Has every thread of this process execute a full memory barrier before this returns (membarrier(2)). Threads on
/// CPU are interrupted for about 1 us; the others are not. Returns whether it was done. Async-signal-safe: yes.
bool clinux_barrier_in_all_threads(void);

/// Reads a word that other threads may be changing: one aligned load, of some value that was stored. `word` must not be
/// NULL, and must be aligned and mapped. Async-signal-safe: yes.
static inline uint64_t clinux_load_word(const uint64_t *_Nonnull word) {
  return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/// Keeps the compiler from moving memory accesses past it, and is no instruction. Async-signal-safe: yes.
static inline void clinux_compiler_barrier(void) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

/// A watch for the page faults of one thread that go to a disk. Zero-initialized by the caller.
struct clinux_fault_watch {
  void *_Nullable ring;
};

/// Lets the kernel record `thread`'s page faults in user mode that go to a disk (perf_event_open(2)), until
/// `clinux_unwatch_faults`. Returns whether it does. Nothing happens to the thread, and no descriptor stays open.
/// Async-signal-safe: yes.
bool clinux_watch_faults(pid_t thread, struct clinux_fault_watch *_Nonnull watch);

/// Stores the address of the last fault of at most 255 since the last call, if there was one. Async-signal-safe: yes.
bool clinux_last_fault(struct clinux_fault_watch *_Nonnull watch, uint64_t *_Nonnull address);

/// Ends what `clinux_watch_faults` began. Async-signal-safe: yes.
void clinux_unwatch_faults(struct clinux_fault_watch *_Nonnull watch);

/// Whether the file at `path` has capabilities (setcap(8)). A system call. Async-signal-safe: yes.
bool clinux_has_file_capabilities(const char *_Nonnull path);

/// Whether others of the user may read this process's memory and trace it (PR_GET_DUMPABLE). Async-signal-safe: yes.
bool clinux_is_dumpable(void);

/// The number of bytes that may be read from a pipe, a terminal or a stream socket, 0 at its end; -1 if it is not
/// readable, or is another file. Reads nothing, and never waits.
long clinux_unread_bytes(int descriptor);

/// Creates a pipe that neither blocks nor is inherited. Returns 0 or an error number. Async-signal-safe: yes.
int clinux_pipe(int ends[_Nonnull 2]);

/// Accepts a connection that neither blocks nor is inherited (accept4(2)); -1 with errno. Async-signal-safe: yes.
int clinux_accept(int listener);

/// Stores the peer of a connection (SO_PEERCRED). Returns whether the kernel told it. Async-signal-safe: yes.
bool clinux_peer(int socket, pid_t *_Nonnull process, uid_t *_Nonnull user);

/// Whether the lock of a stdio stream has the layout of glibc's _IO_lock_t here: a word, a count, and the owner, which is
/// the thread's pthread_self(3). Locks a stream of its own to find out. Waits for nothing. Async-signal-safe: no.
bool clinux_knows_stream_locks(void);

/// The stream stdin, stdout or stderr for 0, 1 or 2, as an address; 0 if the program has none. Async-signal-safe: yes.
uint64_t clinux_stream(int number);

/// The offset in a stream of the address of its lock. Async-signal-safe: yes.
uint64_t clinux_stream_lock_offset(void);

/// The offset of the kernel's thread id behind pthread_self(3): that of the only word of a thread's descriptor that has
/// the thread's id, in the calling thread's and in that of another one, which it starts for a moment; 0 if there is none
/// or more than one. Async-signal-safe: no.
uint64_t clinux_thread_id_offset(void);

/// The offset behind pthread_self(3) of the word that the kernel clears at a thread's end; 0 if it is not known.
/// Async-signal-safe: yes.
uint64_t clinux_thread_end_offset(void);

/// A synchronous scope of a context. `cunwind_context_scope` says what the first three fields are.
struct clinux_scope {
  uint64_t magic;
  uint64_t payload;
  uint64_t bound;
  struct clinux_scope *_Nullable outer;
  void *_Nullable owner;  ///< The object that keeps the payload, of a scope that C code has pushed; else NULL.
};

/// Enters a scope on the calling thread: `scope` becomes the innermost one. It must stay where it is until it is left.
/// `bound` is the address of the payload that is bound as a task-local value; or 0. Async-signal-safe: yes.
void clinux_enter_scope(struct clinux_scope *_Nonnull scope, uint64_t payload, uint64_t bound, void *_Nullable owner);

/// Leaves `scope`, which must be the innermost one of the calling thread. Async-signal-safe: yes.
void clinux_leave_scope(const struct clinux_scope *_Nonnull scope);

/// The innermost scope of the calling thread; NULL if there is none. Async-signal-safe: yes.
struct clinux_scope *_Nullable clinux_innermost_scope(void);

/// The address of the calling thread's variable with the address of the innermost scope. Async-signal-safe: yes.
const void *_Nonnull clinux_scope_variable(void);

/// The queue that runs the calling code, and may end at any time; NULL without libdispatch.
const void *_Nullable clinux_current_queue(void);

/// The short, readable form of a mangled Swift or C++ name; with `is_long` the long form of a Swift name, with the modules in
/// it. NULL when the name is none. Free it with free(3).
char *_Nullable clinux_demangle(const char *_Nonnull symbol, size_t length, bool is_long);

#ifdef __cplusplus
}
#endif
