#ifndef GLIB_LOOP_H
#define GLIB_LOOP_H

/// Runs a GLib main loop on the calling thread that turns a hundred times a second, stalls once and then ends.
///
/// `probe` is the value of `LoopProbe.handle`.
void glib_loop_run(void *_Nonnull probe);

#endif
