#define _GNU_SOURCE
#include "glib.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

// Declarations of GLib, whose binary interface has had them unchanged since version 2.0.
struct poll_descriptor;
typedef int poll_function(struct poll_descriptor *descriptors, unsigned count, int timeout);

/// GSource, whose fields are in GLib's headers.
struct source {
  void *callback_data, *callback_functions;
  const void *functions;
  unsigned reference_count;
  void *context;
  int priority;
  unsigned flags, id;
  void *descriptors, *previous, *next;
  const char *name;
  void *private_data;
};
/// What GLib keeps for each thread that dispatches, in a thread-specific value: how deep, and the source.
struct dispatch {
  int depth;
  struct source *source;
};
typedef struct source *new_source_function(void);
typedef void set_callback_function(struct source *source, int (*callback)(void *), void *data, void *notify);
typedef void set_priority_function(struct source *source, int priority);
typedef unsigned attach_function(struct source *source, void *context);
typedef void unref_function(struct source *source);

static void *glib;
static void *(*default_context)(void);
static poll_function *(*get_poll)(void *context);
static void (*set_poll)(void *context, poll_function *function);
static void (*wake_up)(void *context);
static void *loop_functions[CPRELOAD_GLIB_FUNCTIONS];

/// The probe; NULL while no turns are to begin.
static _Atomic(void *) probe;
/// Set before `probe`, and not changed afterwards.
static void (*begin_turn)(void *), (*end_turn)(void *);
static poll_function *previous;

/// Where the loop's thread has its `struct dispatch`; NULL if that is not known.
static _Atomic(struct dispatch *) loop_dispatch;
static struct source *(*current_source)(void);
/// The kinds of sources without a name, by the variables of GLib that have their functions.
static struct {
  const char *symbol, *kind;
  const void *functions;
} kinds[] = {{"g_timeout_funcs", "timeout", NULL},
             {"g_idle_funcs", "idle", NULL},
             {"g_io_watch_funcs", "I/O watch", NULL},
             {"g_child_watch_funcs", "child watch", NULL},
             {"g_unix_signal_funcs", "signal", NULL}};
/// The longest name of a source that is kept, in bytes.
#define LONGEST_NAME 127
#define KINDS (sizeof kinds / sizeof *kinds)

/// Copies memory that may not be mapped: write(2) copies what is, allocates nothing, never waits. Returns the count.
static size_t copy(const int *ends, const void *from, void *to, size_t size) {
  ssize_t written = write(ends[1], from, size);
  if (written <= 0) return 0;
  ssize_t count = read(ends[0], to, (size_t)written);
  return count < 0 ? 0 : (size_t)count;
}

/// Finds where GLib keeps the loop's thread's source: the only thread-specific value that leads to the one that GLib
/// dispatches now, which is this function's. Runs once, on the loop's thread.
static int find_dispatch(void *context) {
  (void)context;
  int before = errno;
  struct dispatch *found = NULL, seen;
  struct source *own = current_source();
  int ends[2], count = 0;
  if (own && pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
    for (pthread_key_t key = 0; key < PTHREAD_KEYS_MAX; key++) {
      struct dispatch *value = pthread_getspecific(key);
      if (!value || copy(ends, value, &seen, sizeof seen) < sizeof seen || seen.source != own || seen.depth < 1)
        continue;
      found = value;
      count++;
    }
    close(ends[0]);
    close(ends[1]);
  }
  if (count == 1) atomic_store(&loop_dispatch, found);
  errno = before;
  return 0;
}

/// Lets the loop call find_dispatch once, before its other work.
static void ask_for_dispatch(void *context) {
  new_source_function *make = (new_source_function *)dlsym(glib, "g_idle_source_new");
  set_callback_function *set_callback = (set_callback_function *)dlsym(glib, "g_source_set_callback");
  set_priority_function *set_priority = (set_priority_function *)dlsym(glib, "g_source_set_priority");
  attach_function *attach = (attach_function *)dlsym(glib, "g_source_attach");
  unref_function *unref = (unref_function *)dlsym(glib, "g_source_unref");
  current_source = (__typeof__(current_source))dlsym(glib, "g_main_current_source");
  if (!make || !set_callback || !set_priority || !attach || !unref || !current_source) return;
  for (size_t index = 0; index < KINDS; index++) kinds[index].functions = dlsym(glib, kinds[index].symbol);
  struct source *source = make();
  set_callback(source, find_dispatch, NULL, NULL);
  // G_PRIORITY_HIGH.
  set_priority(source, -100);
  attach(source, context);
  unref(source);
}

/// Stores the name of the source that the loop dispatches, or its kind.
static void describe_source(const int *ends, char *name, size_t size) {
  struct dispatch *place = atomic_load(&loop_dispatch), now, then;
  struct source source;
  if (!place || copy(ends, place, &now, sizeof now) < sizeof now || now.depth < 1 || !now.source) return;
  if (copy(ends, now.source, &source, sizeof source) < sizeof source) return;
  // A source that is dispatched belongs to the context, which holds it.
  if (source.context != default_context() || source.reference_count == 0) return;
  char text[LONGEST_NAME + 1] = "";
  size_t length = source.name ? copy(ends, source.name, text, sizeof text - 1) : 0;
  text[length] = 0;
  const char *kind = "another kind";
  for (size_t index = 0; index < KINDS; index++) {
    if (kinds[index].functions && kinds[index].functions == source.functions) kind = kinds[index].kind;
  }
  if (copy(ends, place, &then, sizeof then) < sizeof then || then.source != now.source) return;
  if (text[0]) snprintf(name, size, "GSource %s", text);
  else snprintf(name, size, "GSource without a name (%s)", kind);
}

bool cpreload_find_glib(void) {
  // The handle is kept, so GLib stays.
  if (!glib) glib = dlopen("libglib-2.0.so.0", RTLD_LAZY | RTLD_NOLOAD);
  if (!glib) return false;
  default_context = (__typeof__(default_context))dlsym(glib, "g_main_context_default");
  get_poll = (__typeof__(get_poll))dlsym(glib, "g_main_context_get_poll_func");
  set_poll = (__typeof__(set_poll))dlsym(glib, "g_main_context_set_poll_func");
  wake_up = (__typeof__(wake_up))dlsym(glib, "g_main_context_wakeup");
  loop_functions[0] = dlsym(glib, "g_main_loop_run");
  loop_functions[1] = dlsym(glib, "g_main_context_iteration");
  return default_context && get_poll && set_poll && wake_up;
}

void cpreload_glib_functions(struct cpreload_range *ranges) {
  for (size_t index = 0; index < CPRELOAD_GLIB_FUNCTIONS; index++) {
    ranges[index] = (struct cpreload_range){0, 0};
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *function = loop_functions[index];
    if (!function || !dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol) continue;
    ranges[index].start = (uint64_t)(uintptr_t)function;
    ranges[index].end = ranges[index].start + symbol->st_size;
  }
}

/// The poll function of the context. GLib reads errno after it, so it leaves errno as the previous function has set it.
static int poll_between_turns(struct poll_descriptor *descriptors, unsigned count, int timeout) {
  void *handle = atomic_load_explicit(&probe, memory_order_acquire);
  if (!handle) return previous(descriptors, count, timeout);
  int before = errno;
  end_turn(handle);
  errno = before;
  int ready = previous(descriptors, count, timeout);
  int after = errno;
  handle = atomic_load_explicit(&probe, memory_order_acquire);
  if (handle) begin_turn(handle);
  errno = after;
  return ready;
}

void cpreload_watch_glib(void *handle, void (*begin)(void *), void (*end)(void *)) {
  begin_turn = begin;
  end_turn = end;
  void *context = default_context();
  previous = get_poll(context);
  atomic_store_explicit(&probe, handle, memory_order_release);
  set_poll(context, poll_between_turns);
  ask_for_dispatch(context);
  // The context may be waiting in the previous function, from which the next turn would begin unseen.
  wake_up(context);
}

int cpreload_glib_is_watched(void) { return get_poll(default_context()) == poll_between_turns; }

void cpreload_glib_source(char *name, long size) {
  name[0] = 0;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
  describe_source(ends, name, (size_t)size);
  close(ends[0]);
  close(ends[1]);
}

void cpreload_unwatch_glib(void) {
  void *handle = atomic_exchange(&probe, NULL);
  if (handle) end_turn(handle);
}

void cpreload_forget_glib(void) { atomic_store(&probe, NULL); }
