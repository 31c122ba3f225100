// CStalls: functions for scenarios that Swift's modules do not export.

#ifndef CDEMO_H
#define CDEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Waits in epoll_wait(2) without descriptors. Async-signal-safe: yes.
bool stalls_wait_in_epoll(int32_t milliseconds);

/// Computes for 10 ms, until SIGUSR2 comes, whose handler sleeps on a stack of its own (sigaltstack(2)). Returns whether
/// it came. Async-signal-safe: no.
bool stalls_sleep_in_handler(uint32_t milliseconds);

/// Makes a pipe that no child inherits, in an array of two. Returns whether it succeeded. Async-signal-safe: yes.
bool stalls_make_pipe(int32_t *_Nonnull ends);

/// Returns whether a file is only in memory, on a tmpfs(5). Async-signal-safe: yes.
bool stalls_is_in_memory(int32_t descriptor);

/// Binds the calling thread to the first of its CPUs, until `stalls_unpin_thread`. Async-signal-safe: yes.
void stalls_pin_thread(void);

/// Lets the calling thread run on all CPUs again that it had. Async-signal-safe: yes.
void stalls_unpin_thread(void);

/// Makes this the size of the stacks of threads that are created without one. Returns whether it succeeded.
/// Async-signal-safe: no.
bool stalls_set_default_stack(size_t bytes);

/// Starts a detached thread with a stack of this size that calls `work`; a priority over 0 makes it a real-time thread
/// (SCHED_RR). Returns whether the system permits it. Async-signal-safe: no.
bool stalls_start_thread(size_t stack_bytes, int32_t priority, void (*_Nonnull work)(void *_Nullable argument),
                         void *_Nullable argument);

/// Returns a non-blocking eventfd(2) with the value 0, or -1 with errno. The caller closes it. Async-signal-safe: yes.
int32_t stalls_open_event(void);

/// Adds one to an eventfd(2). Async-signal-safe: yes.
void stalls_signal_event(int32_t descriptor);

/// Calls `work` in a callback of dl_iterate_phdr(3), which holds the dynamic loader's lock. Async-signal-safe: no.
void stalls_with_loader_lock(void (*_Nonnull work)(void *_Nullable argument), void *_Nullable argument);

/// Makes the calling thread's resolver(3) ask only the name server at this port of 127.0.0.1, once, for so many seconds, at
/// most 30. Returns whether it succeeded. `stalls_use_own_name_servers` reverts it. Async-signal-safe: no.
bool stalls_use_name_server(uint16_t port, int32_t seconds);

/// Makes the calling thread's resolver use /etc/resolv.conf again. Async-signal-safe: no.
void stalls_use_own_name_servers(void);

/// dispatch_once_f: calls `work` at the first call with this token, which must be 0 before. Other callers wait until `work` has
/// returned. Async-signal-safe: no.
void stalls_once(intptr_t *_Nonnull token, void (*_Nonnull work)(void *_Nullable argument), void *_Nullable argument);

/// Returns a std::mutex. `stalls_cxx_free` destroys it. Async-signal-safe: no, like the other functions of the mutex.
void *_Nonnull stalls_cxx_make(void);

/// Destroys a mutex that no thread owns or waits for.
void stalls_cxx_free(void *_Nonnull mutex);

/// Locks the mutex.
void stalls_cxx_lock(void *_Nonnull mutex);

/// Unlocks the mutex.
void stalls_cxx_unlock(void *_Nonnull mutex);

/// Forks a child that ends at once, and waits for it. Returns whether its exit status is right. Async-signal-safe: no, like
/// all functions below that do not say otherwise.
bool stalls_fork_and_wait(void);

/// Runs a shell as a child, and waits for it. Returns whether its exit status is right.
bool stalls_exec_and_wait(void);

/// Loads a few small libraries with dlopen(3) and unloads them. Returns whether one exists.
bool stalls_load_and_unload(void);

/// Throws a C++ exception through a few frames and catches it. Returns whether the caught value is the thrown one.
bool stalls_throw_and_catch(void);

/// Allocates some 8 MB in blocks of many sizes and frees them. Returns whether they kept their contents.
bool stalls_allocate_and_free(void);

/// The bytes that malloc(3) has handed out and that have not been freed, in all arenas.
size_t stalls_allocated_bytes(void);

/// Maps memory of this size, dirties each page and returns the pages to the kernel, twice. Returns whether the pages were empty
/// each time.
bool stalls_dirty_and_drop(size_t length);

/// Makes the kernel evict the pages of this mapping as far as it can (MADV_PAGEOUT, Linux 5.4). They come back when touched.
/// Returns whether the kernel supports it.
bool stalls_page_out(uint64_t address, uint64_t length);

/// The number of seconds by which `stalls_step_clock` sets the machine's clock back.
#define STALLS_CLOCK_STEP_SECONDS 2

/// The result of a step of the clock, and the exit status of the child that makes it.
typedef enum stalls_clock_result {
  STALLS_CLOCK_STEPPED = 0,
  /// Nothing has changed, because CAP_SYS_TIME is missing or no child could be made.
  STALLS_CLOCK_REFUSED = 1,
  /// The clock is, or may be, STALLS_CLOCK_STEP_SECONDS slow.
  STALLS_CLOCK_LEFT_WRONG = 2,
} stalls_clock_result;

/// Sets the machine's wall clock back by STALLS_CLOCK_STEP_SECONDS, and forward again after this number of milliseconds, exactly.
/// A child with all signals blocked does this, and finishes even if this process is killed.
stalls_clock_result stalls_step_clock(uint32_t milliseconds);

/// What a child of `stalls_start_peer` does.
typedef enum stalls_peer_kind {
  /// Holds flock(2) on the file at the path.
  STALLS_PEER_FLOCK,
  /// Holds a lock of fcntl(2) on the file at the path.
  STALLS_PEER_RECORD_LOCK,
  /// Writes a byte to the descriptor at the end.
  STALLS_PEER_WRITER,
  /// Reads the descriptor until it is empty and its other end closed.
  STALLS_PEER_READER,
  /// Writes more to the descriptor than a pipe holds, at once, and ends.
  STALLS_PEER_FILLER,
} stalls_peer_kind;

/// Forks a child named `demo-peer` that sleeps for the given time and ends. It has no descriptor open but the given one, or
/// the file at `path`. Returns its id once it sleeps, or -1. The caller waits for it.
int32_t stalls_start_peer(stalls_peer_kind kind, int32_t descriptor, const char *_Nullable path, uint32_t milliseconds);

/// Makes a stream for `descriptor` the program's `stdout`. Returns the one before, or NULL if that failed.
/// `stalls_restore_stdout` reverts it, and closes the descriptor.
void *_Nullable stalls_replace_stdout(int32_t descriptor);

/// Closes the program's `stdout` and makes `before` its `stdout` again.
void stalls_restore_stdout(void *_Nonnull before);

/// Takes and gives back the lock of `stdout`, as a function that prints does.
void stalls_lock_stdout(void);
void stalls_unlock_stdout(void);

/// Prints this many characters.
void stalls_print_much(size_t count);

/// Prints a line.
void stalls_print_line(void);

/// Makes a connection over the loopback interface that holds all the data that it takes, unread. Stores the end whose
/// close(2) waits until everything has been read (SO_LINGER), and the end to read. Returns whether it succeeded.
bool stalls_make_unsent_data(int32_t ends[_Nonnull 2]);

/// Reads a descriptor until its other end has been closed, and closes it.
void stalls_read_all(int32_t reader);

/// Returns whether `stalls_delay_fsync` works on this system, as far as the kernel says.
bool stalls_can_delay_fsync(void);

/// Makes the calling thread's next fsync(2) of this descriptor begin after that time, as if the disk had hung: by a filter that
/// stays with the thread (seccomp_unotify(2)). Returns whether it succeeded.
bool stalls_delay_fsync(int32_t descriptor, uint32_t milliseconds);

#ifdef __cplusplus
}
#endif

#endif  // CDEMO_H
