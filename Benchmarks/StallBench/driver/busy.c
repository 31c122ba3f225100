// Stalls that compute, that wait for locks and other threads, that have two phases, and that end the process. Each is
// one function, which calls what stalls it directly.
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define SECONDS(milliseconds) \
  { (milliseconds) / 1000, (long)((milliseconds) % 1000) * 1000000 }

static volatile double sink;
static volatile uint64_t bits;
static char buffer[1 << 16];

// CPU

CASE(count_words) { SPIN(milliseconds, for (int i = 0; i < 300; i++) bits = bits * 31 + 7) }
CASE(sum_columns) { SPIN(milliseconds, for (int i = 0; i < 300; i++) sink = sink * 0.5 + i) }
CASE(format_rows){SPIN(milliseconds, snprintf(buffer, 200, "%s %d %f", "row", (int)bits, sink))} CASE(clear_pages){
    SPIN(milliseconds, memset(buffer, (int)bits, sizeof buffer))} CASE(build_list) {
  SPIN(milliseconds, void *volatile node = malloc(48); free(node))
}
__attribute__((noinline)) void walk_tree(unsigned milliseconds);
static const int walk_tree_line = __LINE__ + 1;
void walk_tree(unsigned milliseconds) {
  // 200 calls deep. The lowest 16 bits are the time, the others the depth.
  if (milliseconds >> 16 < 200) {
    walk_tree(milliseconds + (1 << 16));
    bits++;
    return;
  }
  SPIN(milliseconds & 0xffff, for (int i = 0; i < 300; i++) bits = bits * 31 + 7)
}

// The kernel works for the thread.

CASE(fill_random){SPIN(milliseconds, NOTE(getrandom(buffer, 8192, 0)))} CASE(read_zeros) {
  int file = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  SPIN(milliseconds, NOTE(read(file, buffer, sizeof buffer)))
  close(file);
}
CASE(stat_files) {
  struct stat status;
  SPIN(milliseconds, NOTE(stat("/proc/self/status", &status)))
}
CASE(touch_memory) {
  size_t size = 64 * 4096;
  char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  SPIN(milliseconds, for (size_t at = 0; at < size; at += 4096) memory[at] = 1; madvise(memory, size, MADV_DONTNEED))
  munmap(memory, size);
}

// Other threads and processes use the processors.

CASE(compete_for_cpu) {
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  pid_t children[64];
  int count = 0;
  double until = bench_now() + milliseconds / 1e3;
  for (; count < 6 * processors && count < 64; count++) {
    if ((children[count] = fork()) == 0) {
      while (bench_now() < until) continue;
      _exit(0);
    }
  }
  SPIN(milliseconds, bits = bits * 31 + 7)
  bench_gaps = 0;
  for (int index = 0; index < count; index++) waitpid(children[index], NULL, 0);
}

// Locks, and other threads' work

static void lock_mutex(void *lock) { pthread_mutex_lock(lock); }
static void unlock_mutex(void *lock) { pthread_mutex_unlock(lock); }
static void lock_read(void *lock) { pthread_rwlock_rdlock(lock); }
static void lock_write(void *lock) { pthread_rwlock_wrlock(lock); }
static void unlock_rwlock(void *lock) { pthread_rwlock_unlock(lock); }
static void nothing(void *lock) { (void)lock; }
static void post(void *lock) { sem_post(lock); }

static pthread_mutex_t store = PTHREAD_MUTEX_INITIALIZER, recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                       queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_ready;
static sem_t finished;

CASE(save_document) {
  bench_hold((struct bench_holder){lock_mutex, unlock_mutex, &store, milliseconds, "saver", false, {0}}, true);
  pthread_mutex_lock(&store);
  pthread_mutex_unlock(&store);
}
CASE(save_beside_index) {
  bench_hold((struct bench_holder){lock_mutex, unlock_mutex, &store, milliseconds, "indexer", true, {0}}, true);
  pthread_mutex_lock(&store);
  pthread_mutex_unlock(&store);
}
CASE(update_settings) {
  bench_hold((struct bench_holder){lock_mutex, unlock_mutex, &recursive, milliseconds, "settings", false, {0}}, true);
  pthread_mutex_lock(&recursive);
  pthread_mutex_unlock(&recursive);
}
CASE(lock_with_limit) {
  bench_hold((struct bench_holder){lock_mutex, unlock_mutex, &store, milliseconds, "holder", false, {0}}, true);
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 20;
  if (pthread_mutex_timedlock(&store, &until) == 0) pthread_mutex_unlock(&store);
}
CASE(change_table) {
  bench_hold((struct bench_holder){lock_read, unlock_rwlock, &table, milliseconds, "reader", false, {0}}, false);
  pthread_rwlock_wrlock(&table);
  pthread_rwlock_unlock(&table);
}
CASE(read_table) {
  bench_hold((struct bench_holder){lock_write, unlock_rwlock, &table, milliseconds, "writer", false, {0}}, true);
  pthread_rwlock_rdlock(&table);
  pthread_rwlock_unlock(&table);
}
static void signal_change(void *lock) {
  (void)lock;
  pthread_mutex_lock(&queue);
  is_ready = true;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&queue);
}
CASE(wait_for_pool) {
  is_ready = false;
  bench_hold((struct bench_holder){nothing, signal_change, NULL, milliseconds, "pool-1", true, {0}}, false);
  pthread_mutex_lock(&queue);
  while (!is_ready) pthread_cond_wait(&changed, &queue);
  pthread_mutex_unlock(&queue);
}
CASE(wait_for_pool_with_limit) {
  is_ready = false;
  bench_hold((struct bench_holder){nothing, signal_change, NULL, milliseconds, "pool-2", false, {0}}, false);
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 20;
  pthread_mutex_lock(&queue);
  while (!is_ready) pthread_cond_timedwait(&changed, &queue, &until);
  pthread_mutex_unlock(&queue);
}
CASE(wait_for_thumbnail) {
  sem_init(&finished, 0, 0);
  bench_hold((struct bench_holder){nothing, post, &finished, milliseconds, "painter", false, {0}}, false);
  int result;
  while ((result = sem_wait(&finished)) < 0) NOTE(result);
}
CASE(wait_with_limit) {
  sem_init(&finished, 0, 0);
  bench_hold((struct bench_holder){nothing, post, &finished, milliseconds, "decoder", false, {0}}, false);
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 20;
  int result;
  while ((result = sem_timedwait(&finished, &until)) < 0) NOTE(result);
}
static void *work(void *milliseconds) {
  struct timespec left = SECONDS(*(unsigned *)milliseconds);
  while (nanosleep(&left, &left)) continue;
  return NULL;
}
CASE(join_worker) {
  pthread_t worker;
  if (pthread_create(&worker, NULL, work, &milliseconds)) abort();
  pthread_join(worker, NULL);
}

// Two phases: most of the time is the cause.

CASE(compute_then_wait) {
  SPIN(milliseconds * 3 / 4, bits = bits * 31 + 7)
  struct timespec left = SECONDS(milliseconds / 4);
  int result;
  while ((result = nanosleep(&left, &left)) < 0) NOTE(result);
}
CASE(wait_then_lock) {
  struct timespec left = SECONDS(milliseconds / 4);
  int result;
  while ((result = nanosleep(&left, &left)) < 0) NOTE(result);
  bench_hold((struct bench_holder){lock_mutex, unlock_mutex, &store, milliseconds * 3 / 4, "syncer", false, {0}}, true);
  pthread_mutex_lock(&store);
  pthread_mutex_unlock(&store);
}
CASE(read_then_compute) {
  int ends[2];
  if (pipe(ends)) abort();
  bench_write_later(ends[1], milliseconds / 4);
  ssize_t result;
  while ((result = read(ends[0], buffer, 8)) < 0) NOTE(result);
  close(ends[0]), close(ends[1]);
  SPIN(milliseconds * 3 / 4, bits = bits * 31 + 7)
}

// A stall that the process does not survive: the truth has its end before.

static void *kill_process(void *milliseconds) {
  unsigned left = *(unsigned *)milliseconds;
  work(&left);
  bench_end();
  kill(getpid(), SIGKILL);
  return NULL;
}
CASE(lock_twice) {
  // A deadlock, which a supervisor ends.
  pthread_t killer;
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  if (pthread_create(&killer, NULL, kill_process, &milliseconds)) abort();
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&mutex);
}
CASE(compute_until_abort) {
  SPIN(milliseconds, bits = bits * 31 + 7)
  bench_end();
  signal(SIGABRT, SIG_DFL);
  abort();
}

const struct bench_case bench_busy[] = {
    ROW("glib-a", "cpu", count_words, "cpu", 250),
    ROW("glib-a", "cpu-short", sum_columns, "cpu", 120),
    ROW("glib-a", "cpu-long", format_rows, "cpu", 1500),
    ROW("glib-a", "cpu-deep", walk_tree, "cpu", 250),
    ROW("glib-a", "cpu-library", clear_pages, "cpu", 250),
    ROW("glib-a", "kernel-random", fill_random, "kernel", 250),
    ROW("glib-a", "kernel-memory", touch_memory, "kernel", 250),
    ROW("glib-a", "contention", compete_for_cpu, "contention", 400),
    ROW("glib-a", "mutex", save_document, "lock", 250),
    ROW("glib-a", "mutex-short", update_settings, "lock", 120),
    ROW("glib-a", "write-lock", change_table, "lock", 250),
    ROW("glib-a", "read-lock", read_table, "lock", 250),
    ROW("glib-a", "pool", wait_for_pool, "lock", 250),
    ROW("glib-a", "cpu-then-sleep", compute_then_wait, "cpu", 400),
    ROW("glib-a", "fatal-deadlock", lock_twice, "lock", 400),
    ROW("glib-b", "cpu-malloc", build_list, "cpu", 250),
    ROW("glib-b", "kernel-zeros", read_zeros, "kernel", 250),
    ROW("glib-b", "kernel-stat", stat_files, "kernel", 250),
    ROW("glib-b", "mutex-busy-owner", save_beside_index, "lock", 250),
    ROW("glib-b", "mutex-limit", lock_with_limit, "lock", 250),
    ROW("glib-b", "pool-limit", wait_for_pool_with_limit, "lock", 250),
    ROW("glib-b", "semaphore", wait_for_thumbnail, "lock", 250),
    ROW("glib-b", "semaphore-limit", wait_with_limit, "lock", 250),
    ROW("glib-b", "join", join_worker, "lock", 250),
    ROW("glib-b", "sleep-then-mutex", wait_then_lock, "lock", 400),
    ROW("glib-b", "pipe-then-cpu", read_then_compute, "cpu", 400),
    ROW("thread", "thread-cpu", count_words, "cpu", 250),
    ROW("thread", "thread-kernel", fill_random, "kernel", 250),
    ROW("thread", "thread-mutex", save_document, "lock", 250),
    ROW("thread", "thread-pool", wait_for_pool, "lock", 250),
    ROWS("thread", "thread-repeated-cpu", sum_columns, "cpu", 120, 3, 90),
    ROW("thread", "fatal-cpu", compute_until_abort, "cpu", 400),
    ROW("cf", "cf-cpu", count_words, "cpu", 250),
    ROW("cf", "cf-mutex", save_document, "lock", 250),
    ROW("cf", "cf-read-lock", read_table, "lock", 250),
    ROW("cf", "cf-semaphore", wait_for_thumbnail, "lock", 250),
    {0},
};
