// What both uses of the preloaded library need in the program that loads it.

#pragma once

#include <limits.h>
#include <stdbool.h>

/// The largest size of a copied variable, in bytes with the zero byte. A name of 31 bytes fits behind it into a path.
#define CPRELOAD_MAXIMUM_VALUE (PATH_MAX - 32)

/// Copies the variable `name` of the environment, which the program may change, into `to`, which has PATH_MAX bytes.
/// Returns whether it is set, not empty, and shorter than CPRELOAD_MAXIMUM_VALUE.
int cpreload_copy_variable(const char *name, char *to);

/// Removes this library from LD_PRELOAD for child processes. Call it before there are threads.
void cpreload_leave_environment(void);

/// Whether a library with this name is in the process.
bool cpreload_is_loaded(const char *name);

/// Whether only the main thread may load the monitor: the process has libdispatch without Foundation.
///
/// Foundation comes with the monitor, and initializes libdispatch anew (CFRuntime.c, libdispatch_init). That gives the
/// main queue to the thread that loads it. If that is not the main thread, nothing serves the queue, and the program
/// freezes.
bool cpreload_needs_main_thread(void);

/// Starts a detached thread that runs none of the program's signal handlers, except those of crashes and of Swift's
/// crash handler, which stops threads by SIGPROF. Returns 0 or an error number.
int cpreload_start_thread(void *(*body)(void *));
