// CLinux: functions of glibc and of the Swift runtime that Swift's own modules do not show.

#ifndef CLINUX_H
#define CLINUX_H

#if !defined(__linux__)
#error "StallWatch supports Linux on x86-64 and aarch64 only: build it for one of these."
#endif

// clang-format off
#include <features.h>
#if !defined(__GLIBC__)
#error "StallWatch needs glibc, whose locks it reads: build for Linux with glibc, and link Swift statically with --static-swift-stdlib if need be. The Static Linux SDK (Musl) is not supported."
#endif
// clang-format on

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The calling thread's kernel id (gettid(2)). A system call. Async-signal-safe: yes.
pid_t clinux_gettid(void);

/// Names the calling thread; a longer name is cut to the kernel's 15 bytes. Async-signal-safe: yes.
void clinux_name_this_thread(const char *_Nonnull name);

/// Blocks the signals that apps use in the calling thread, so that none of them is delivered to it. As they are stay the
/// signals of crashes and traps, and SIGPROF: Swift's crash handler stops a thread with the first of SIGUSR1, SIGUSR2 and
/// SIGPROF that the thread does not block (CrashHandlerLinux.cpp, signal_for_suspend). A trap that is blocked would reset
/// the app's handler (kernel/signal.c, force_sig_info_to_task). Workers of libdispatch leave all but SIGABRT.
/// Returns 0 or an error number. Async-signal-safe: yes.
int clinux_block_app_signals(void);

/// Whether `bytes` more can be mapped now: no limit and no accounting of the kernel forbids it. Two system calls.
bool clinux_has_room(size_t bytes);

/// Whether RLIMIT_AS leaves the process fewer than `bytes` addresses.
bool clinux_is_short_of_addresses(size_t bytes);

/// Makes glibc create no further heap for a new thread's malloc(3). A heap takes 64 MiB of addresses. Lasts for the life
/// of the process. Returns whether it does.
bool clinux_share_heap(void);

/// Unblocks every signal in the calling thread. Returns 0 or an error number. Async-signal-safe: yes.
int clinux_unblock_all_signals(void);

/// Waits for `semaphore` until CLOCK_MONOTONIC reaches `deadline` nanoseconds; UINT64_MAX waits without end.
/// A signal does not end the wait. Returns 0 when it was posted, else ETIMEDOUT. Async-signal-safe: no.
int clinux_semaphore_wait_until(sem_t *_Nonnull semaphore, uint64_t deadline);

/// The size in bytes of the function at `address`, if its image exports it; else 0. Takes the dynamic linker's lock.
/// Async-signal-safe: no.
size_t clinux_function_size(const void *_Nonnull address);

/// Whether `code` lies in the executable; then `base` receives the address at which the executable's virtual address 0 is
/// mapped. Takes the dynamic linker's lock. Async-signal-safe: no.
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
  int descriptor;
  void *_Nullable ring;
};

/// Lets the kernel record the addresses of `thread`'s page faults that go to a disk (perf_event_open(2)), in user mode
/// only. Returns whether it does; then `clinux_unwatch_faults` ends it. Two descriptor and mapping calls; nothing happens
/// to the thread. Async-signal-safe: yes.
bool clinux_watch_faults(pid_t thread, struct clinux_fault_watch *_Nonnull watch);

/// Stores the address of the last fault that was recorded since the last call, of at most 255. Returns whether there
/// was one. Async-signal-safe: yes.
bool clinux_last_fault(struct clinux_fault_watch *_Nonnull watch, uint64_t *_Nonnull address);

/// Ends what `clinux_watch_faults` began. Async-signal-safe: yes.
void clinux_unwatch_faults(struct clinux_fault_watch *_Nonnull watch);

/// Whether the file at `path` has capabilities (setcap(8)). `path` must not be NULL. A system call.
/// Async-signal-safe: yes.
bool clinux_has_file_capabilities(const char *_Nonnull path);

/// Whether this process is dumpable (PR_GET_DUMPABLE): others of the same user may read its memory and trace it.
/// Async-signal-safe: yes.
bool clinux_is_dumpable(void);

/// Creates a pipe that does not block and that no other program inherits (pipe2(2)). `ends` receives the end to read and the
/// end to write. Returns 0 or an error number. Async-signal-safe: yes.
int clinux_pipe(int ends[_Nonnull 2]);

/// Accepts a connection that does not block and that no other program inherits (accept4(2)). Returns its descriptor or -1,
/// with the reason in errno. Async-signal-safe: yes.
int clinux_accept(int listener);

/// Stores the process and the user at the other end of the connection `socket` (SO_PEERCRED). Returns whether the kernel
/// told them. Async-signal-safe: yes.
bool clinux_peer(int socket, pid_t *_Nonnull process, uid_t *_Nonnull user);

/// A synchronous scope of a context. The first three fields are those of `cunwind_context_scope`, which says what they
/// are.
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

/// The queue that runs the calling code (dispatch_get_current_queue(3)); NULL without libdispatch. The queue may end at any
/// time. Async-signal-safe: no.
const void *_Nullable clinux_current_queue(void);

/// The short, readable form of a mangled Swift or C++ name, or NULL when the name is neither.
/// The caller frees the result with free(3). Allocates. Async-signal-safe: no.
char *_Nullable clinux_demangle(const char *_Nonnull symbol, size_t length);

/// The long form of a mangled Swift name, with the modules in it, or NULL when the name is none.
/// The caller frees the result with free(3). Allocates. Async-signal-safe: no.
char *_Nullable clinux_demangle_long(const char *_Nonnull symbol, size_t length);

#ifdef __cplusplus
}
#endif

#endif  // CLINUX_H
