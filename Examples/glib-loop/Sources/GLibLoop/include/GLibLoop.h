#ifndef GLIB_LOOP_H
#define GLIB_LOOP_H

/// Runs a GLib main loop on the calling thread that turns a hundred times a second, stalls once and then ends.
///
/// `probe` is what `LoopProbe.handle` gives.
void glib_loop_run(void *_Nonnull probe);

#endif
