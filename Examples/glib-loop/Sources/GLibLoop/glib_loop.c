// A GLib main loop that reports its turns to StallWatch. The loop waits only in its poll function, so one turn ends and the
// next begins there. Nothing else in the program has to change.

#include <CStallWatch.h>
#include <glib.h>

#include "GLibLoop.h"

// Global, because a poll function has no argument for it.
static void *probe;

static gint poll_between_turns(GPollFD *descriptors, guint count, gint timeout) {
  stallwatch_end_turn(probe);
  gint ready = g_poll(descriptors, count, timeout);
  stallwatch_begin_turn(probe);
  return ready;
}

static gboolean work_shortly(gpointer data) {
  (void)data;
  g_usleep(1000);
  return G_SOURCE_CONTINUE;
}

static gboolean work_for_too_long(gpointer loop) {
  g_usleep(300 * 1000);
  g_main_loop_quit(loop);
  return G_SOURCE_REMOVE;
}

void glib_loop_run(void *handle) {
  probe = handle;
  GMainContext *context = g_main_context_default();
  GMainLoop *loop = g_main_loop_new(context, FALSE);
  g_main_context_set_poll_func(context, poll_between_turns);
  guint busy = g_timeout_add(10, work_shortly, NULL);
  g_timeout_add(500, work_for_too_long, loop);
  g_main_loop_run(loop);
  stallwatch_end_turn(probe);
  g_source_remove(busy);
  g_main_context_set_poll_func(context, NULL);
  g_main_loop_unref(loop);
}
