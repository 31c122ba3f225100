// Threads that have what the monitor needs, whatever the program's threads have.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fenv.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "CLinux.h"
#include "own_thread.h"

typedef struct beginning {
  void *(*body)(void *);
  void *context;
  bool has_affinity;
  cpu_set_t affinity;
} beginning;

static size_t thread_locals;
static void measure_thread_locals(void) { thread_locals = thread_local_bytes(); }

// In a section of its own, whose ends the linker names, and kept on the stack while the body runs: it tells the stack of such
// a thread.
extern const char __start_stallwatch_begin[] __attribute__((visibility("hidden")));
extern const char __stop_stallwatch_begin[] __attribute__((visibility("hidden")));

__attribute__((section("stallwatch_begin"), disable_tail_calls)) static void *begin(void *context) {
  beginning given = *(beginning *)context;
  free(context);
  struct sched_param none = {0};
  int policy = sched_getscheduler(0);
  // Where the system forbids it, the thread goes on as it is.
  if (policy != SCHED_OTHER && policy >= 0) sched_setscheduler(0, SCHED_OTHER, &none);
  if (given.has_affinity) sched_setaffinity(0, sizeof given.affinity, &given.affinity);
  prctl(PR_SET_TIMERSLACK, TIMER_SLACK);
  // A program may trap on divisions by zero (feenableexcept(3)) or round up: clone(2) copies that, too.
  fesetenv(FE_DFL_ENV);
  return given.body(given.context);
}

static bool is_kept;

// A plug-in may be unloaded while threads run this code in it (dlclose(3)), so it stays from the first one on. The
// linker finds it by the name in its own list, wherever a relative path leads by now; an executable has no name there.
//
// Twice does no harm. pthread_once(3) would: a library's constructor, in which the thread has the linker's lock, would
// wait there for a thread that waits for that lock.
static void keep_image(void) {
  if (__atomic_load_n(&is_kept, __ATOMIC_ACQUIRE)) return;
  Dl_info info;
  struct link_map *map = NULL;
  if (dladdr1((const void *)begin, &info, (void **)&map, RTLD_DL_LINKMAP) && map && map->l_name[0])
    dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  __atomic_store_n(&is_kept, true, __ATOMIC_RELEASE);
}

// Less than 128 KiB, from which on malloc(3) maps memory that it unmaps again (M_MMAP_THRESHOLD in mallopt(3)).
#define HEAP_PIECE (120 << 10)
#define HEAP_PIECES 4

void clinux_grow_heap(void) {
  // volatile: a compiler may leave out an allocation that nothing uses.
  void *volatile pieces[HEAP_PIECES];
  for (int index = 0; index < HEAP_PIECES; index++) pieces[index] = malloc(HEAP_PIECE);
  for (int index = 0; index < HEAP_PIECES; index++) free(pieces[index]);
}

bool clinux_begins_thread(uint64_t address) {
  return address >= (uintptr_t)__start_stallwatch_begin && address < (uintptr_t)__stop_stallwatch_begin;
}

size_t clinux_count_usable(pid_t thread, const int *processors, size_t count) {
  cpu_set_t usable;
  if (sched_getaffinity(thread, sizeof usable, &usable) != 0) return 0;
  size_t found = 0;
  for (size_t index = 0; index < count; index++) {
    if (processors[index] >= 0 && CPU_ISSET(processors[index], &usable)) found++;
  }
  return found;
}

int clinux_usable_processors(pid_t thread) {
  cpu_set_t usable;
  return sched_getaffinity(thread, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : 0;
}

int clinux_start_thread(pthread_t *thread, size_t stack_bytes, pid_t like, void *(*body)(void *), void *context) {
  static pthread_once_t measured = PTHREAD_ONCE_INIT;
  pthread_once(&measured, measure_thread_locals);
  keep_image();
  beginning *given = malloc(sizeof *given);
  pthread_attr_t attributes;
  if (!given || pthread_attr_init(&attributes) != 0) {
    free(given);
    return ENOMEM;
  }
  *given = (beginning){.body = body, .context = context};
  cpu_set_t own;
  given->has_affinity = like && sched_getaffinity(like, sizeof given->affinity, &given->affinity) == 0;
  if (!given->has_affinity && sched_getaffinity(0, sizeof own, &own) == 0 &&
      sched_getaffinity(getpid(), sizeof given->affinity, &given->affinity) == 0) {
    CPU_OR(&given->affinity, &given->affinity, &own);
    given->has_affinity = true;
  }
  // Before the thread exists: it must run no handler of the app, not even at its beginning.
  sigset_t before;
  block_app_signals(&before);
  int status = pthread_attr_setstacksize(&attributes, stack_size(stack_bytes, thread_locals));
  if (status == 0) status = pthread_create(thread, &attributes, begin, given);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (status != 0) free(given);
  return status;
}
