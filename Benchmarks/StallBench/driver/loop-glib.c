// The main loop of GLib, whose poll function the program wraps to learn when a turn begins and ends.
#include <glib.h>

#include "bench.h"

static GMainLoop *loop;
static GPollFunc previous;

static gint poll_between_turns(GPollFD *descriptors, guint count, gint timeout) {
  bench_turn_end();
  gint ready = previous(descriptors, count, timeout);
  bench_turn_begin();
  return ready;
}

static gboolean step(gpointer data) {
  (void)data;
  int pause = bench_step();
  if (pause < 0) {
    g_main_loop_quit(loop);
  } else {
    g_timeout_add((guint)pause, step, NULL);
  }
  return G_SOURCE_REMOVE;
}

void bench_run_loop(const char *set) {
  bench_start(set);
  loop = g_main_loop_new(NULL, FALSE);
  previous = g_main_context_get_poll_func(NULL);
  g_main_context_set_poll_func(NULL, poll_between_turns);
  g_timeout_add(400, step, NULL);
  g_main_loop_run(loop);
}

static gboolean leave(gpointer nested) {
  g_main_loop_quit(nested);
  return G_SOURCE_REMOVE;
}

void bench_run_nested(unsigned milliseconds) {
  GMainLoop *nested = g_main_loop_new(NULL, FALSE);
  g_timeout_add(milliseconds, leave, nested);
  g_main_loop_run(nested);
  g_main_loop_unref(nested);
}
