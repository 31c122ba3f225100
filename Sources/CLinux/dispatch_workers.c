// Follows the worker threads of libdispatch, by the two functions that it calls around each drain.
//
// libdispatch calls `_dispatch_begin_NSAutoReleasePool` when a worker leaves its idle wait, before it takes an item, and
// `_dispatch_end_NSAutoReleasePool` before it waits again (src/queue.c, _dispatch_root_queue_drain; src/init.c). On Linux
// they are NULL unless a program sets them. Both exist in the shared and in the static library.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "CLinux.h"

extern void *(*_dispatch_begin_NSAutoReleasePool)(void)__attribute__((weak));
extern void (*_dispatch_end_NSAutoReleasePool)(void *) __attribute__((weak));
extern const char *dispatch_queue_get_label(void *queue) __attribute__((weak));

/// The most workers that are followed: libdispatch starts up to 255 for each of its queues, and few programs have 64.
#define MAXIMUM_WORKERS 512
/// The most monitors of a process that wait for a drain at the same time.
#define MAXIMUM_WAITERS 16

struct worker {
  _Atomic(pid_t) thread;   // 0 if the entry is free.
  atomic_int depth;        // The number of drains on the thread's stack. Only the thread itself changes it.
  atomic_bool is_in_pool;  // Whether the outermost drain takes one of a limited number of threads.
};

struct waiter {
  _Atomic(void (*)(void *)) wake;  // NULL if the entry is free.
  void *_Atomic context;
};

static struct worker workers[MAXIMUM_WORKERS];
static struct waiter waiters[MAXIMUM_WAITERS];
/// Whether a worker found no free entry, so that the entries are not all workers.
static atomic_bool has_overflowed;
/// The number of threads that read `waiters` now.
static atomic_int readers;
static pthread_key_t end_of_thread;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool is_installed;

static __thread struct worker *own;

// Runs when a worker ends.
static void forget(void *argument) {
  struct worker *worker = argument;
  atomic_store(&worker->depth, 0);
  atomic_store(&worker->thread, 0);
  own = NULL;
}

static struct worker *claim(void) {
  pid_t thread = gettid();
  for (size_t index = 0; index < MAXIMUM_WORKERS; index++) {
    pid_t free_entry = 0;
    if (!atomic_compare_exchange_strong(&workers[index].thread, &free_entry, thread)) continue;
    // Without the key's value the entry would never be freed, and a later thread could have the same id.
    if (pthread_setspecific(end_of_thread, &workers[index]) == 0) return &workers[index];
    atomic_store(&workers[index].thread, 0);
    break;
  }
  atomic_store(&has_overflowed, true);
  return NULL;
}

// The queues without a limit on threads are the parents of serial queues, and have names that end like this.
static bool has_limit(void) {
  static const char ending[] = ".overcommit";
  const char *label = dispatch_queue_get_label != NULL ? dispatch_queue_get_label(NULL) : NULL;
  size_t length = label != NULL ? strlen(label) : 0;
  return length < sizeof ending || strcmp(label + length - (sizeof ending - 1), ending) != 0;
}

static void *begin_drain(void) {
  if (own == NULL) own = claim();
  if (own != NULL && atomic_load(&own->depth) == 0) atomic_store(&own->is_in_pool, has_limit());
  // A full fence, which `clinux_add_drain_waiter` and its callers pair with: either the waiter sees the depth, or this
  // thread sees the waiter.
  if (own == NULL || atomic_fetch_add(&own->depth, 1) == 0) {
    atomic_fetch_add(&readers, 1);
    for (size_t index = 0; index < MAXIMUM_WAITERS; index++) {
      void (*wake)(void *) = atomic_load(&waiters[index].wake);
      if (wake != NULL) wake(atomic_load(&waiters[index].context));
    }
    atomic_fetch_sub(&readers, 1);
  }
  // Not NULL, or libdispatch would not call the other function for a queue with a pool per item.
  return &workers;
}

static void end_drain(void *pool) {
  (void)pool;
  // A drain that began before the functions were set ends without having begun.
  if (own != NULL && atomic_load(&own->depth) > 0) atomic_fetch_sub(&own->depth, 1);
}

static void install(void) {
  if (&_dispatch_begin_NSAutoReleasePool == NULL || &_dispatch_end_NSAutoReleasePool == NULL) return;
  // Another library uses them already: leave them to it.
  if (_dispatch_begin_NSAutoReleasePool != NULL || _dispatch_end_NSAutoReleasePool != NULL) return;
  if (pthread_key_create(&end_of_thread, forget) != 0) return;
  __atomic_store_n(&_dispatch_end_NSAutoReleasePool, end_drain, __ATOMIC_SEQ_CST);
  __atomic_store_n(&_dispatch_begin_NSAutoReleasePool, begin_drain, __ATOMIC_SEQ_CST);
  atomic_store(&is_installed, true);
}

bool clinux_follow_dispatch_workers(void) {
  pthread_once(&once, install);
  return clinux_follows_dispatch_workers();
}

bool clinux_follows_dispatch_workers(void) {
  return atomic_load(&is_installed) && !atomic_load(&has_overflowed) &&
         __atomic_load_n(&_dispatch_begin_NSAutoReleasePool, __ATOMIC_SEQ_CST) == begin_drain &&
         __atomic_load_n(&_dispatch_end_NSAutoReleasePool, __ATOMIC_SEQ_CST) == end_drain;
}

bool clinux_is_in_drain(void) { return own != NULL && atomic_load(&own->depth) > 0; }

size_t clinux_dispatch_workers(struct clinux_worker *into, size_t capacity) {
  size_t count = 0;
  for (size_t index = 0; index < MAXIMUM_WORKERS && count < capacity; index++) {
    pid_t thread = atomic_load(&workers[index].thread);
    if (thread == 0) continue;
    bool is_in_drain = atomic_load(&workers[index].depth) > 0;
    into[count++] = (struct clinux_worker){
        .thread = thread, .is_in_drain = is_in_drain, .is_in_pool = atomic_load(&workers[index].is_in_pool)};
  }
  return count;
}

bool clinux_add_drain_waiter(void (*wake)(void *), void *context) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  bool is_added = false;
  pthread_mutex_lock(&lock);
  for (size_t index = 0; index < MAXIMUM_WAITERS && !is_added; index++) {
    if (atomic_load(&waiters[index].wake) != NULL) continue;
    atomic_store(&waiters[index].context, context);
    atomic_store(&waiters[index].wake, wake);
    is_added = true;
  }
  pthread_mutex_unlock(&lock);
  return is_added;
}

bool clinux_remove_drain_waiter(void *context) {
  for (size_t index = 0; index < MAXIMUM_WAITERS; index++) {
    if (atomic_load(&waiters[index].wake) == NULL || atomic_load(&waiters[index].context) != context) continue;
    atomic_store(&waiters[index].wake, NULL);
    // A worker may have read the entry. It is out of the loop within microseconds, unless it has lost its CPU.
    for (int attempt = 0; attempt < 1000; attempt++) {
      if (atomic_load(&readers) == 0) return true;
      usleep(1000);
    }
    return false;
  }
  return true;
}
