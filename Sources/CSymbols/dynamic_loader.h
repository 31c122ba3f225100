// Whether libraries can be loaded while the program runs.

#ifndef DYNAMIC_LOADER_H
#define DYNAMIC_LOADER_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/// Whether the executable was started by a dynamic loader. Any thread, not async-signal-safe.
///
/// In a static executable dlopen(3) gives the library a second libc, which was never initialized: libdw crashes in it.
bool has_dynamic_loader(void);

#pragma GCC visibility pop

#endif
