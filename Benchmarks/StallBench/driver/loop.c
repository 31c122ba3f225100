// The loops. One is compiled: with LOOP_GLIB that of GLib, with LOOP_CF that of CoreFoundation, else one of the
// program's own.
#define _GNU_SOURCE
#include "bench.h"

#if defined(LOOP_GLIB)
// The main loop of GLib, whose poll function the program wraps to learn when a turn begins and ends.
#include <glib.h>

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
  g_timeout_add(bench_first_pause(), step, NULL);
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

#elif defined(LOOP_CF)
// The main run loop of CoreFoundation, with observers that tell when a turn begins and ends.
#include <CoreFoundation/CoreFoundation.h>

static void observe(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info) {
  (void)observer, (void)info;
  if (activity == kCFRunLoopAfterWaiting || activity == kCFRunLoopEntry) {
    bench_turn_begin();
  } else {
    bench_turn_end();
  }
}

static void step(CFRunLoopTimerRef timer, void *info) {
  (void)timer, (void)info;
  int pause = bench_step();
  if (pause < 0) {
    CFRunLoopStop(CFRunLoopGetMain());
    return;
  }
  CFRunLoopTimerRef next = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + pause / 1e3, 0, 0, 0, step, NULL);
  CFRunLoopAddTimer(CFRunLoopGetMain(), next, kCFRunLoopCommonModes);
  CFRelease(next);
}

void bench_run_loop(const char *set) {
  bench_start(set);
  CFRunLoopObserverRef observer =
      CFRunLoopObserverCreate(NULL, kCFRunLoopEntry | kCFRunLoopAfterWaiting | kCFRunLoopBeforeWaiting | kCFRunLoopExit,
                              true, 0, observe, NULL);
  CFRunLoopAddObserver(CFRunLoopGetMain(), observer, kCFRunLoopCommonModes);
  CFAbsoluteTime due = CFAbsoluteTimeGetCurrent() + bench_first_pause() / 1e3;
  CFRunLoopTimerRef first = CFRunLoopTimerCreate(NULL, due, 0, 0, 0, step, NULL);
  CFRunLoopAddTimer(CFRunLoopGetMain(), first, kCFRunLoopCommonModes);
  CFRunLoopRun();
  bench_turn_end();
}

void bench_run_nested(unsigned milliseconds) { CFRunLoopRunInMode(kCFRunLoopDefaultMode, milliseconds / 1e3, false); }

#else
// A loop that the program has written itself, on a thread of its own; the main thread only waits for it.
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

__attribute__((noinline)) static void wait_for_events(int milliseconds) {
  double until = bench_now() + milliseconds / 1e3;
  bench_turn_end();
  // The loop's own wait: cut short or not, it goes on until the next event is due.
  for (double left; (left = until - bench_now()) > 0;) poll(NULL, 0, (int)(left * 1e3) + 1);
  bench_turn_begin();
}

void bench_run_nested(unsigned milliseconds) {
  double until = bench_now() + milliseconds / 1e3;
  while (bench_now() < until) wait_for_events(20);
}

__attribute__((noinline)) static void run_turns(void) {
  int pause = (int)bench_first_pause();
  while (pause >= 0) {
    wait_for_events(pause);
    pause = bench_step();
  }
  bench_turn_end();
}

static void *run(void *set) {
  bench_start(set);
  run_turns();
  return NULL;
}

void bench_run_loop(const char *set) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, (void *)set)) exit(1);
  pthread_setname_np(thread, "loop");
  pthread_join(thread, NULL);
}

#endif
