// CDemo: what Swift's own modules do not show the demo's scenarios.

#ifndef CDEMO_H
#define CDEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Waits in epoll_wait(2) for events of nothing. Async-signal-safe: yes.
void demo_wait_in_epoll(int32_t milliseconds);

/// A non-blocking eventfd(2) with nothing in it, or -1 with errno. The caller closes it. Async-signal-safe: yes.
int32_t demo_open_event(void);

/// Adds one to an eventfd(2). Async-signal-safe: yes.
void demo_signal_event(int32_t descriptor);

/// Calls `work` in a callback of dl_iterate_phdr(3), which holds the dynamic loader's lock meanwhile.
/// Async-signal-safe: no.
void demo_with_loader_lock(void (*_Nonnull work)(void *_Nullable argument), void *_Nullable argument);

/// Lets the calling thread's resolver(3) ask one name server only, at that port of 127.0.0.1: once, for one second.
/// Returns whether it will. `demo_use_own_name_servers` ends it. Async-signal-safe: no.
bool demo_use_name_server(uint16_t port);

/// Lets the calling thread's resolver ask those of /etc/resolv.conf again. Async-signal-safe: no.
void demo_use_own_name_servers(void);

/// dispatch_once_f: calls `work` the first time that it is called with this token, which was 0 before. Other callers wait
/// until it has come back. Async-signal-safe: no.
void demo_once(intptr_t *_Nonnull token, void (*_Nonnull work)(void *_Nullable argument), void *_Nullable argument);

/// A std::mutex, which `demo_cxx_free` ends. Async-signal-safe: no, as the rest of them.
void *_Nonnull demo_cxx_make(void);

/// Ends a mutex that nobody has and nobody waits for.
void demo_cxx_free(void *_Nonnull mutex);

/// Takes it.
void demo_cxx_lock(void *_Nonnull mutex);

/// Gives it back.
void demo_cxx_unlock(void *_Nonnull mutex);

/// Makes a child of fork(2) that ends at once, and waits for it. Returns whether its exit status came back.
/// Async-signal-safe: no, as the rest of them.
bool demo_fork_and_wait(void);

/// Runs a shell as a child, and waits for it. Returns whether its exit status came back.
bool demo_exec_and_wait(void);

/// Loads a few small libraries with dlopen(3) and unloads them. Returns whether one was there.
bool demo_load_and_unload(void);

/// Throws a C++ exception through a few frames and catches it. Returns whether it arrived as it was thrown.
bool demo_throw_and_catch(void);

/// Allocates some 8 MB in blocks of many sizes and frees them. Returns whether they kept what was written into them.
bool demo_allocate_and_free(void);

/// Lets malloc(3) give back to the kernel what it keeps of freed memory.
void demo_give_back_free_memory(void);

/// Maps so many bytes, dirties each page, gives the pages back to the kernel, and all of it once more. Returns whether the
/// pages were empty each time.
bool demo_dirty_and_drop(size_t length);

/// Has the kernel take away what it can of the pages of that mapping of this process (MADV_PAGEOUT, Linux 5.4): they come
/// back when they are touched. Returns whether it knows how.
bool demo_page_out(uint64_t address, uint64_t length);

/// By how many seconds `demo_step_clock` sets the machine's clock back.
#define DEMO_CLOCK_STEP_SECONDS 2

/// What came of a step of the clock; also the exit status of the child that makes it.
typedef enum demo_clock_result {
  DEMO_CLOCK_STEPPED = 0,
  /// CAP_SYS_TIME is missing, or no child could be made: nothing has changed.
  DEMO_CLOCK_REFUSED = 1,
  /// The clock is, or may be, DEMO_CLOCK_STEP_SECONDS slow.
  DEMO_CLOCK_LEFT_WRONG = 2,
} demo_clock_result;

/// Sets the machine's wall clock back by DEMO_CLOCK_STEP_SECONDS and forth again after so many milliseconds, exactly. A child
/// with all signals blocked does it, which goes on if this process is killed meanwhile.
demo_clock_result demo_step_clock(uint32_t milliseconds);

/// How many kinds of calls `demo_wait_interruptibly` knows.
#define DEMO_INTERRUPTIBLE_CALLS 8

/// The name of that kind of call, from 0 on. Async-signal-safe: yes.
const char *_Nonnull demo_interruptible_call_name(int32_t kind);

/// Waits in a call of that kind, which ends after so many milliseconds by the monotonic clock, or when it is interrupted.
/// Returns 0 when the time was up, EINTR, or another errno.
int32_t demo_wait_interruptibly(int32_t kind, uint32_t milliseconds);

#ifdef __cplusplus
}
#endif

#endif  // CDEMO_H
