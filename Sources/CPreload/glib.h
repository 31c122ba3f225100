// The default main context of GLib, whose functions are found at run time, so that the build does not need GLib.

#pragma once

#include <stdbool.h>
#include <stdint.h>

/// One of these has a frame on the stack while GLib runs a main context: g_main_loop_run, g_main_context_iteration.
#define CPRELOAD_GLIB_FUNCTIONS 2

struct cpreload_range {
  uint64_t start;
  uint64_t end;  ///< Equal to `start` for an unknown range.
};

/// Finds GLib among the loaded libraries, and loads nothing. Waits while another thread loads a library. Returns
/// whether GLib is there with the functions that are needed; from then on it stays loaded.
bool cpreload_find_glib(void);

/// Stores the ranges of the CPRELOAD_GLIB_FUNCTIONS functions, after cpreload_find_glib() has returned true.
void cpreload_glib_functions(struct cpreload_range *ranges);

/// Lets the default main context wait in a function that ends a turn before the wait and begins one after it. It takes
/// the context's own lock, so that any thread may call it (GLib's documentation of g_main_context_set_poll_func).
void cpreload_watch_glib(void *handle, void (*begin)(void *), void (*end)(void *));

/// Returns 1 if the context still waits in the function that cpreload_watch_glib() has set, else 0. It takes the
/// context's own lock, which GLib never holds while it waits or calls the program.
int cpreload_glib_is_watched(void);

/// Stores the name of the source whose callback the loop runs, as "GSource NAME", or its kind if it has none; an empty text if
/// that is not known. Reads guarded memory only, and may be called on any thread while the loop is in a turn.
void cpreload_glib_source(char *name, long size);

/// Ends the turn, if one has begun, and begins no more.
void cpreload_unwatch_glib(void);

/// Begins no more turns in a child of fork(2), where nothing watches them. Async-signal-safe: yes.
void cpreload_forget_glib(void);
