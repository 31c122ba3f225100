// Whether libraries can be loaded while the program runs.

#ifndef CSYMBOLS_DYNAMIC_LOADER_H
#define CSYMBOLS_DYNAMIC_LOADER_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/// Whether the executable was started by a dynamic loader. Any thread, not async-signal-safe.
///
/// In a static executable dlopen(3) gives the library a second libc, which was never initialized: libdw crashes in it.
bool csymbols_has_dynamic_loader(void);

#pragma GCC visibility pop

#endif
