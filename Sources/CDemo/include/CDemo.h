// CDemo: system calls for the demo's scenarios that Swift's Glibc module does not show.

#ifndef CDEMO_H
#define CDEMO_H

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

#ifdef __cplusplus
}
#endif

#endif  // CDEMO_H
