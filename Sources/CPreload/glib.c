#define _GNU_SOURCE
#include "glib.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>

// Declarations of GLib, whose binary interface has had them unchanged since version 2.0.
struct poll_descriptor;
typedef int poll_function(struct poll_descriptor *descriptors, unsigned count, int timeout);
typedef void *default_context_function(void);
typedef poll_function *get_poll_function(void *context);
typedef void set_poll_function(void *context, poll_function *function);
typedef void wakeup_function(void *context);

static default_context_function *default_context;
static get_poll_function *get_poll;
static set_poll_function *set_poll;
static wakeup_function *wake_up;
static void *loop_functions[CPRELOAD_GLIB_FUNCTIONS];

/// The probe; NULL while no turns are to begin.
static _Atomic(void *) probe;
/// Set before `probe`, and not changed afterwards.
static void (*begin_turn)(void *), (*end_turn)(void *);
static poll_function *previous;

bool cpreload_find_glib(void) {
  // The handle is kept, so GLib stays.
  void *glib = dlopen("libglib-2.0.so.0", RTLD_LAZY | RTLD_NOLOAD);
  if (!glib) return false;
  default_context = (default_context_function *)dlsym(glib, "g_main_context_default");
  get_poll = (get_poll_function *)dlsym(glib, "g_main_context_get_poll_func");
  set_poll = (set_poll_function *)dlsym(glib, "g_main_context_set_poll_func");
  wake_up = (wakeup_function *)dlsym(glib, "g_main_context_wakeup");
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
  // The context may be waiting in the previous function, from which the next turn would begin unseen.
  wake_up(context);
}

int cpreload_glib_is_watched(void) { return get_poll(default_context()) == poll_between_turns; }

void cpreload_unwatch_glib(void) {
  void *handle = atomic_exchange(&probe, NULL);
  if (handle) end_turn(handle);
}

void cpreload_forget_glib(void) { atomic_store(&probe, NULL); }
