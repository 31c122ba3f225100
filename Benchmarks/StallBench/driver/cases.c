// The stalls that are written in C. Each is one function, which calls what stalls it directly.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"

#define SECONDS(milliseconds) \
  { (milliseconds) / 1000, (long)((milliseconds) % 1000) * 1000000 }

static volatile double sink;
static volatile uint64_t bits;
static char buffer[1 << 16];

// CPU

CASE(count_words) { SPIN(milliseconds, for (int i = 0; i < 300; i++) bits = bits * 31 + 7) }
CASE(sum_columns) { SPIN(milliseconds, for (int i = 0; i < 300; i++) sink = sink * 0.5 + i) }
CASE(format_rows) { SPIN(milliseconds, snprintf(buffer, 200, "%s %d %f", "row", (int)bits, sink)) }
CASE(clear_pages) { SPIN(milliseconds, memset(buffer, (int)bits, sizeof buffer)) }
CASE(build_list) { SPIN(milliseconds, void *volatile node = malloc(48); free(node)) }
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

CASE(fill_random) { SPIN(milliseconds, NOTE(getrandom(buffer, 8192, 0))) }
CASE(read_zeros) {
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

// Input and output

CASE(read_answer) {
  int ends[2];
  if (pipe(ends)) abort();
  bench_write_later(ends[1], milliseconds);
  NOTE(read(ends[0], buffer, 8));
  close(ends[0]), close(ends[1]);
}
CASE(receive_reply) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) abort();
  // A limit for the wait, as network code sets it: such a call is never restarted after a signal.
  struct timeval limit = {20, 0};
  setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  bench_write_later(ends[1], milliseconds);
  ssize_t result;
  while ((result = recv(ends[0], buffer, 8, 0)) < 0 && errno == EINTR) NOTE(result);
  close(ends[0]), close(ends[1]);
}
CASE(fetch_page) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) ||
      getsockname(listener, (struct sockaddr *)&address, &length) ||
      connect(client, (struct sockaddr *)&address, length))
    abort();
  int server = accept(listener, NULL, NULL);
  bench_write_later(server, milliseconds);
  NOTE(read(client, buffer, 8));
  close(listener), close(client), close(server);
}
CASE(poll_device) {
  int ends[2];
  if (pipe(ends)) abort();
  bench_write_later(ends[1], milliseconds);
  struct pollfd device = {ends[0], POLLIN, 0};
  int result;
  while ((result = poll(&device, 1, 20000)) < 0) NOTE(result);
  close(ends[0]), close(ends[1]);
}
CASE(select_device) {
  int ends[2];
  if (pipe(ends)) abort();
  bench_write_later(ends[1], milliseconds);
  int result;
  do {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    struct timeval limit = {20, 0};
    result = select(ends[0] + 1, &set, NULL, NULL, &limit);
    NOTE(result);
  } while (result < 0);
  close(ends[0]), close(ends[1]);
}
CASE(epoll_device) {
  int ends[2], set = epoll_create1(EPOLL_CLOEXEC);
  if (pipe(ends)) abort();
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event);
  bench_write_later(ends[1], milliseconds);
  int result;
  while ((result = epoll_wait(set, &event, 1, 20000)) < 0) NOTE(result);
  close(ends[0]), close(ends[1]), close(set);
}
CASE(await_event) {
  int event = eventfd(0, EFD_CLOEXEC);
  bench_write_later(event, milliseconds);
  NOTE(read(event, buffer, 8));
  close(event);
}
CASE(send_upload) {
  int ends[2];
  if (pipe(ends)) abort();
  fcntl(ends[1], F_SETPIPE_SZ, 4096);
  pid_t reader = fork();
  if (reader == 0) {
    close(ends[1]);
    struct timespec left = SECONDS(milliseconds);
    while (nanosleep(&left, &left)) continue;
    while (read(ends[0], buffer, 4096) == 4096) continue;
    _exit(0);
  }
  NOTE(write(ends[1], buffer, 8192));
  close(ends[0]), close(ends[1]);
  waitpid(reader, NULL, 0);
}
CASE(flush_journal) {
  char path[] = "/var/tmp/stallbench-XXXXXX";
  int file = mkstemp(path);
  unlink(path);
  // As many writes as it takes.
  for (double until = bench_now() + milliseconds / 1e3; bench_now() < until;) {
    if (pwrite(file, buffer, sizeof buffer, 0) < 0 || fsync(file)) abort();
  }
  close(file);
}

// Sleep

CASE(retry_later) {
  struct timespec left = SECONDS(milliseconds);
  int result;
  while ((result = nanosleep(&left, &left)) < 0) NOTE(result);
}
CASE(wait_a_little) {
  double until = bench_now() + milliseconds / 1e3;
  for (double left; (left = until - bench_now()) > 1e-4;) NOTE(usleep((useconds_t)(left * 1e6)));
}
CASE(wait_until) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += (long)milliseconds * 1000000;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) bench_early_returns++;
}
CASE(pause_in_poll) {
  double until = bench_now() + milliseconds / 1e3;
  for (double left; (left = until - bench_now()) > 1e-3;) NOTE(poll(NULL, 0, (int)(left * 1e3)));
}
CASE(pause_in_select) {
  struct timeval left = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000};
  // Linux writes back what is left.
  int result;
  while ((result = select(0, NULL, NULL, NULL, &left)) < 0) NOTE(result);
}
CASE(retry_often) {
  for (double until = bench_now() + milliseconds / 1e3; bench_now() < until;) NOTE(usleep(8000));
}

// Paging: another thread delivers the page late.

struct late_page {
  int faults;
  char *page;
  unsigned milliseconds;
};

static void *deliver(void *argument) {
  struct late_page *late = argument;
  struct uffd_msg message;
  struct pollfd faults = {late->faults, POLLIN, 0};
  while (poll(&faults, 1, -1) < 0) continue;
  if (read(late->faults, &message, sizeof message) < 0) return NULL;
  struct timespec left = SECONDS(late->milliseconds);
  while (nanosleep(&left, &left)) continue;
  struct uffdio_copy copy = {.dst = (uintptr_t)late->page, .src = ((uintptr_t)buffer + 4095) & ~4095ul, .len = 4096};
  ioctl(late->faults, UFFDIO_COPY, &copy);
  return NULL;
}

static struct late_page late;
static pthread_t pager;

static void prepare_page(unsigned milliseconds) {
  late.faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
  struct uffdio_api api = {.api = UFFD_API};
  late.page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  late.milliseconds = milliseconds;
  struct uffdio_register range = {.range = {(uintptr_t)late.page, 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  if (ioctl(late.faults, UFFDIO_API, &api) || ioctl(late.faults, UFFDIO_REGISTER, &range) ||
      pthread_create(&pager, NULL, deliver, &late))
    abort();
}

static void drop_page(void) {
  pthread_join(pager, NULL);
  close(late.faults);
  munmap(late.page, 4096);
}

CASE(open_mapped_book) {
  prepare_page(milliseconds);
  bits += (uint64_t)*(volatile char *)late.page;
  drop_page();
}
CASE(edit_mapped_book) {
  prepare_page(milliseconds);
  *(volatile char *)late.page = 1;
  drop_page();
}

// Child processes

CASE(convert_image) {
  pid_t child = fork();
  if (child == 0) {
    struct timespec left = SECONDS(milliseconds);
    while (nanosleep(&left, &left)) continue;
    _exit(0);
  }
  int result;
  while ((result = waitpid(child, NULL, 0)) < 0) NOTE(result);
}
CASE(run_script) {
  char command[64];
  snprintf(command, sizeof command, "sleep %u.%03u", milliseconds / 1000, milliseconds % 1000);
  if (system(command) < 0) abort();
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
  NOTE(read(ends[0], buffer, 8));
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

// The sets. A set is one process with at most 25 stalls.

static const struct bench_case glib_a[] = {
    ROW("cpu", count_words, "cpu", 320, 1, 0, false, false),
    ROW("cpu-short", sum_columns, "cpu", 240, 1, 0, false, false),
    ROW("cpu-long", format_rows, "cpu", 1000, 1, 0, false, false),
    ROW("cpu-deep", walk_tree, "cpu", 320, 1, 0, false, false),
    ROW("cpu-library", clear_pages, "cpu", 320, 1, 0, false, false),
    ROW("kernel-random", fill_random, "kernel", 320, 1, 0, false, false),
    ROW("kernel-memory", touch_memory, "kernel", 320, 1, 0, false, false),
    ROW("contention", compete_for_cpu, "contention", 450, 1, 0, false, false),
    ROW("mutex", save_document, "lock", 320, 1, 0, false, false),
    ROW("mutex-short", update_settings, "lock", 240, 1, 0, false, false),
    ROW("write-lock", change_table, "lock", 320, 1, 0, false, false),
    ROW("read-lock", read_table, "lock", 320, 1, 0, false, false),
    ROW("pool", wait_for_pool, "lock", 320, 1, 0, false, false),
    ROW("pipe", read_answer, "io", 320, 1, 0, false, false),
    ROW("socket-limit", receive_reply, "io", 320, 1, 0, false, false),
    ROW("poll", poll_device, "io", 320, 1, 0, false, false),
    ROW("nanosleep", retry_later, "sleep", 320, 1, 0, false, false),
    ROW("usleep-long", wait_a_little, "sleep", 1000, 1, 0, false, false),
    ROW("page-read", open_mapped_book, "paging", 320, 1, 0, false, false),
    ROW("child", convert_image, "child", 320, 1, 0, false, false),
    ROW("cpu-then-sleep", compute_then_wait, "cpu", 480, 1, 0, false, false),
    ROW("fatal-deadlock", lock_twice, "lock", 480, 1, 0, false, false),
};
static const struct bench_case glib_b[] = {
    ROW("cpu-malloc", build_list, "cpu", 320, 1, 0, false, false),
    ROW("kernel-zeros", read_zeros, "kernel", 320, 1, 0, false, false),
    ROW("kernel-stat", stat_files, "kernel", 320, 1, 0, false, false),
    ROW("mutex-busy-owner", save_beside_index, "lock", 320, 1, 0, false, false),
    ROW("mutex-limit", lock_with_limit, "lock", 320, 1, 0, false, false),
    ROW("pool-limit", wait_for_pool_with_limit, "lock", 320, 1, 0, false, false),
    ROW("semaphore", wait_for_thumbnail, "lock", 320, 1, 0, false, false),
    ROW("semaphore-limit", wait_with_limit, "lock", 320, 1, 0, false, false),
    ROW("join", join_worker, "lock", 320, 1, 0, false, false),
    ROW("network", fetch_page, "io", 320, 1, 0, false, false),
    ROW("select", select_device, "io", 320, 1, 0, false, false),
    ROW("epoll", epoll_device, "io", 320, 1, 0, false, false),
    ROW("fsync", flush_journal, "io", 360, 1, 0, false, false),
    ROW("repeated", await_event, "io", 280, 3, 90, false, false),
    ROW("sleep-until", wait_until, "sleep", 320, 1, 0, false, false),
    ROW("sleep-poll", pause_in_poll, "sleep", 320, 1, 0, false, false),
    ROW("sleep-select", pause_in_select, "sleep", 320, 1, 0, false, false),
    ROW("sleep-often", retry_often, "sleep", 360, 1, 0, false, false),
    ROW("page-write", edit_mapped_book, "paging", 320, 1, 0, false, false),
    ROW("script", run_script, "child", 320, 1, 0, false, false),
    ROW("sleep-then-mutex", wait_then_lock, "lock", 480, 1, 0, false, false),
    ROW("pipe-then-cpu", read_then_compute, "cpu", 480, 1, 0, false, false),
};
static const struct bench_case own_loop[] = {
    ROW("thread-cpu", count_words, "cpu", 320, 1, 0, false, false),
    ROW("thread-kernel", fill_random, "kernel", 320, 1, 0, false, false),
    ROW("thread-mutex", save_document, "lock", 320, 1, 0, false, false),
    ROW("thread-pool", wait_for_pool, "lock", 320, 1, 0, false, false),
    ROW("thread-pipe", read_answer, "io", 240, 1, 0, false, false),
    ROW("thread-full-pipe", send_upload, "io", 320, 1, 0, false, false),
    ROW("thread-nanosleep", retry_later, "sleep", 320, 1, 0, false, false),
    ROW("thread-child", convert_image, "child", 320, 1, 0, false, false),
    ROW("thread-repeated-cpu", sum_columns, "cpu", 260, 3, 90, false, false),
    ROW("fatal-cpu", compute_until_abort, "cpu", 480, 1, 0, false, false),
};
static const struct bench_case run_loop[] = {
    ROW("cf-cpu", count_words, "cpu", 320, 1, 0, false, false),
    ROW("cf-mutex", save_document, "lock", 320, 1, 0, false, false),
    ROW("cf-read-lock", read_table, "lock", 320, 1, 0, false, false),
    ROW("cf-semaphore", wait_for_thumbnail, "lock", 320, 1, 0, false, false),
    ROW("cf-socket", receive_reply, "io", 320, 1, 0, false, false),
    ROW("cf-network", fetch_page, "io", 320, 1, 0, false, false),
    ROW("cf-sleep", wait_a_little, "sleep", 240, 1, 0, false, false),
    ROW("cf-page", open_mapped_book, "paging", 320, 1, 0, false, false),
};

struct set {
  const char *name;
  const struct bench_case *cases;
  unsigned count;
};

#define SET(name, cases) \
  { name, cases, sizeof cases / sizeof *cases }

/// Cases of other languages; NULL in a driver that is C alone.
__attribute__((weak)) unsigned bench_more_cases(struct bench_case *cases, unsigned most);

unsigned bench_cases_of(const char *set, const struct bench_case **cases) {
  static const struct set sets[] = {SET("glib-a", glib_a), SET("glib-b", glib_b), SET("thread", own_loop),
                                    SET("cf", run_loop)};
  static struct bench_case all[64];
  unsigned count = 0;
  // A healthy case is named after its set, as in "glib-a-idle". They come first: a fatal one stays the last.
  for (unsigned index = 0; index < bench_healthy_count; index++) {
    size_t length = strlen(set);
    const struct bench_case *it = &bench_healthy[index];
    if (strncmp(it->name, set, length) == 0 && it->name[length] == '-') all[count++] = *it;
  }
  if (bench_more_cases && strcmp(set, "swift") == 0) count += bench_more_cases(all + count, 64 - count);
  for (unsigned index = 0; index < sizeof sets / sizeof *sets; index++) {
    if (strcmp(sets[index].name, set)) continue;
    memcpy(all + count, sets[index].cases, sets[index].count * sizeof *all);
    count += sets[index].count;
  }
  *cases = all;
  return count;
}
