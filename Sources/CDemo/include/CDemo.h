// CDemo: what Swift's own modules do not show the demo's scenarios.

#ifndef CDEMO_H
#define CDEMO_H

#include <stdbool.h>
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

#ifdef __cplusplus
}
#endif

#endif  // CDEMO_H
