// Stalls for Tests/Programs/precision.py: a function waits for a holder, and mix_truth says what is true of the report.
// The scenarios' program loads this file in several builds (`stallwatch-scenarios mix`).
//
// The stack of a stalled thread is WAIT <- mix_middle <- mix_enter, that of a holder PLACE <- mix_hold.
#include <arpa/inet.h>
#include <poll.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common.h"

// In memory that a child shares. The loop has the first end, the holder the second one.
struct mix {
  const struct row *row;
  char holder[16], path[256], target[256], text[2048];
  int milliseconds, ends[2];
  pid_t child, owner, last;
  pthread_t threads[2];
  bool has_thread[2];
  pthread_mutex_t mutex, second;
  pthread_rwlock_t rwlock;
  pthread_cond_t condition;
  sem_t semaphore, ready, begun;
  struct timespec end;
};

struct row {
  const char *name, *function;
  bool (*wait)(struct mix *);
  // Of the report: the kinds of cause and lock, and a regular expression for the functions and calls that it may name.
  const char *cause, *lock, *calls;
  // The holders that there may be, separated by blanks.
  const char *holders;
};

#define FUNCTION static NOINLINE
static bool is(const char *word, const char *other) { return strcmp(word, other) == 0; }
static bool starts(const struct mix *m, const char *name);

static const struct timespec *after(struct mix *m, clockid_t clock, int milliseconds) {
  clock_gettime(clock, &m->end);
  m->end.tv_nsec += milliseconds * 1000000L;
  m->end.tv_sec += m->end.tv_nsec / 1000000000;
  m->end.tv_nsec %= 1000000000;
  return &m->end;
}

// Not a function: an inlined one would be a frame, too.
#define COMPUTE(m, milliseconds)                                                                 \
  for (struct timespec end_ = *after(m, CLOCK_MONOTONIC, milliseconds), now_ = {0};              \
       now_.tv_sec < end_.tv_sec || (now_.tv_sec == end_.tv_sec && now_.tv_nsec < end_.tv_nsec); \
       clock_gettime(CLOCK_MONOTONIC, &now_))                                                    \
    for (int i_ = 0; i_ < 20000; i_++) sink += i_ * 7

FUNCTION bool lock_mutex(struct mix *m) {
  // No thread unlocks what an ended one owns.
  if (is(m->holder, "ended")) return pthread_mutex_timedlock(&m->mutex, after(m, CLOCK_REALTIME, m->milliseconds)) != 0;
  return pthread_mutex_lock(&m->mutex) == 0 && pthread_mutex_unlock(&m->mutex) == 0;
}
FUNCTION bool lock_for_writing(struct mix *m) {
  return pthread_rwlock_wrlock(&m->rwlock) == 0 && pthread_rwlock_unlock(&m->rwlock) == 0;
}
FUNCTION bool lock_for_reading(struct mix *m) {
  return pthread_rwlock_rdlock(&m->rwlock) == 0 && pthread_rwlock_unlock(&m->rwlock) == 0;
}
FUNCTION bool wait_for_condition(struct mix *m) {
  return pthread_mutex_lock(&m->second) == 0 &&
         pthread_cond_timedwait(&m->condition, &m->second, after(m, CLOCK_REALTIME, m->milliseconds)) != 0 &&
         pthread_mutex_unlock(&m->second) == 0;
}
FUNCTION bool wait_for_semaphore(struct mix *m) {
  if (is(m->holder, "nobody")) return sem_timedwait(&m->semaphore, after(m, CLOCK_REALTIME, m->milliseconds)) != 0;
  return sem_wait(&m->semaphore) == 0;
}
FUNCTION bool join_thread(struct mix *m) { return m->has_thread[0] = pthread_join(m->threads[0], NULL) != 0; }
FUNCTION bool read_bytes(struct mix *m) { return read(m->ends[0], m->text, 1) == 1; }
FUNCTION bool write_bytes(struct mix *m) { return write(m->ends[0], "!", 1) == 1; }
FUNCTION bool receive_bytes(struct mix *m) { return recv(m->ends[0], m->text, 1, 0) == 1; }
FUNCTION bool poll_bytes(struct mix *m) {
  return poll(&(struct pollfd){.fd = m->ends[0], .events = POLLIN}, 1, -1) == 1;
}
FUNCTION bool select_bytes(struct mix *m) {
  fd_set wanted;
  FD_ZERO(&wanted);
  FD_SET(m->ends[0], &wanted);
  return select(m->ends[0] + 1, &wanted, NULL, NULL, NULL) == 1;
}
FUNCTION bool wait_in_epoll(struct mix *m) {
  struct epoll_event event = {.events = EPOLLIN};
  int set = epoll_create1(EPOLL_CLOEXEC);
  epoll_ctl(set, EPOLL_CTL_ADD, m->ends[0], &event);
  return epoll_wait(set, &event, 1, -1) == 1 && close(set) == 0;
}
FUNCTION bool lock_file(struct mix *m) { return flock(m->ends[0], LOCK_EX) == 0; }
FUNCTION bool lock_record(struct mix *m) {
  return fcntl(m->ends[0], F_SETLKW, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}) == 0;
}
FUNCTION bool wait_for_child(struct mix *m) { return waitpid(m->child, NULL, 0) == m->child; }
FUNCTION bool sleep_for_time(struct mix *m) {
  return nanosleep(&(struct timespec){0, m->milliseconds * 1000000L}, NULL) == 0;
}
FUNCTION bool sleep_until_time(struct mix *m) {
  return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, after(m, CLOCK_MONOTONIC, m->milliseconds), NULL) == 0;
}
FUNCTION bool sleep_in_microseconds(struct mix *m) { return usleep(m->milliseconds * 1000) == 0; }
FUNCTION bool sleep_in_poll(struct mix *m) { return poll(NULL, 0, m->milliseconds) == 0; }
FUNCTION bool sleep_in_select(struct mix *m) {
  return select(0, NULL, NULL, NULL, &(struct timeval){0, m->milliseconds * 1000}) == 0;
}
FUNCTION bool compute(struct mix *m) {
  COMPUTE(m, m->milliseconds);
  return true;
}
FUNCTION bool compute_and_sleep(struct mix *m) {
  COMPUTE(m, m->milliseconds / 2);
  return usleep(m->milliseconds * 500) == 0;
}

#define MUTEX "futex|pthread_mutex_\\\\w+"
#define RWLOCK "futex|pthread_rwlock_\\\\w+"
#define POLL "p?poll|p?select6?|epoll_p?wait2?"
#define SLEEP "(clock_)?nanosleep|usleep|" POLL
#define OWNED "sleep compute chain task"
#define ENDS "thread process"
#define ROW(name, function, cause, lock, calls, holders) \
  { name, #function, function, cause, lock, calls, holders }
static const struct row rows[] = {
    ROW("mutex", lock_mutex, "lock", "pthreadMutex", MUTEX, OWNED " ended"),
    ROW("mutex-recursive", lock_mutex, "lock", "pthreadMutex", MUTEX, OWNED " ended"),
    ROW("mutex-checking", lock_mutex, "lock", "pthreadMutex", MUTEX, OWNED " ended"),
    ROW("mutex-adaptive", lock_mutex, "lock", "pthreadMutex", MUTEX, OWNED " ended"),
    ROW("mutex-robust", lock_mutex, "lock", "pthreadMutex", MUTEX, OWNED),
    ROW("mutex-inheriting", lock_mutex, "lock", "pthreadMutex", MUTEX, OWNED),
    ROW("mutex-shared", lock_mutex, "lock", "pthreadMutex", MUTEX, "process"),
    ROW("mutex-shared-robust", lock_mutex, "lock", "pthreadMutex", MUTEX, "process"),
    ROW("rwlock-writer", lock_for_writing, "lock", "pthreadReadWriteLock", RWLOCK, OWNED),
    ROW("rwlock-reader", lock_for_reading, "lock", "pthreadReadWriteLock", RWLOCK, OWNED),
    // A lock does not name its readers.
    ROW("rwlock-read", lock_for_writing, "lock", "pthreadReadWriteLock", RWLOCK, "thread"),
    ROW("condition", wait_for_condition, "lock", "condition", "futex|pthread_cond_\\\\w+", "nobody"),
    ROW("semaphore", wait_for_semaphore, "lock", "semaphore", "futex|sem_\\\\w+", "thread nobody"),
    ROW("join", join_thread, "lock", "threadJoin", "futex|pthread_\\\\w*join\\\\w*", "sleep compute"),
    ROW("pipe-read", read_bytes, "io", "", "read", ENDS),
    ROW("pipe-write", write_bytes, "io", "", "write", ENDS),
    ROW("fifo", read_bytes, "io", "", "read", ENDS),
    ROW("socketpair", receive_bytes, "io", "", "recv(from)?", ENDS),
    ROW("datagram", receive_bytes, "io", "", "recv(from)?", ENDS),
    ROW("tcp", receive_bytes, "io", "", "recv(from)?", ENDS),
    ROW("udp", receive_bytes, "io", "", "recv(from)?", ENDS),
    ROW("poll", poll_bytes, "io", "", POLL, ENDS),
    ROW("select", select_bytes, "io", "", POLL, ENDS),
    ROW("epoll", wait_in_epoll, "io", "", POLL, ENDS),
    ROW("flock", lock_file, "lock", "file", "flock", ENDS),
    ROW("record-lock", lock_record, "lock", "file", "fcntl", "process"),
    ROW("child", wait_for_child, "syscall", "", "wait4|waitid|waitpid", "process"),
    ROW("nanosleep", sleep_for_time, "sleep", "", SLEEP, "nobody"),
    ROW("clock-nanosleep", sleep_until_time, "sleep", "", SLEEP, "nobody"),
    ROW("usleep", sleep_in_microseconds, "sleep", "", SLEEP, "nobody"),
    ROW("time-poll", sleep_in_poll, "sleep", "", SLEEP, "nobody"),
    ROW("time-select", sleep_in_select, "sleep", "", SLEEP, "nobody"),
    ROW("compute", compute, "cpu", "", "clock_gettime", "nobody"),
    ROW("half", compute_and_sleep, "cpu sleep", "", "clock_gettime|" SLEEP, "nobody"),
};

static bool starts(const struct mix *m, const char *name) { return strncmp(m->row->name, name, strlen(name)) == 0; }
static bool locks_file(const struct mix *m) { return is(m->row->lock, "file"); }

// Returns row `index` as "NAME HOLDER...", or NULL after the last one.
const char *mix_row(int index) {
  static char text[256];
  if (index >= (int)(sizeof rows / sizeof *rows)) return NULL;
  snprintf(text, sizeof text, "%s %s", rows[index].name, rows[index].holders);
  return text;
}

// Differs from sleep_for_time: a compiler makes one function of two with the same code.
FUNCTION bool holder_nap(struct mix *m) {
  return nanosleep(&(struct timespec){0, m->milliseconds * 1000000L}, NULL) != 0;
}
FUNCTION int holder_compute(struct mix *m) {
  COMPUTE(m, m->milliseconds);
  return ++sink;
}
FUNCTION int holder_wait(struct mix *m) {
  return pthread_mutex_lock(&m->second) == 0 && pthread_mutex_unlock(&m->second) == 0;
}

// Gets what the loop will wait for, or gives it back.
static void take(struct mix *m, int *end) {
  if (starts(m, "mutex")) pthread_mutex_lock(&m->mutex);
  if (is(m->row->name, "rwlock-read")) pthread_rwlock_rdlock(&m->rwlock);
  else if (starts(m, "rwlock")) pthread_rwlock_wrlock(&m->rwlock);
  if (!locks_file(m)) return;
  *end = open(m->path, O_RDWR | O_CLOEXEC);
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (starts(m, "flock") ? flock(*end, LOCK_EX) : fcntl(*end, F_SETLK, &whole)) abort();
}
static void give(struct mix *m, int end) {
  static char bytes[65536];
  if (starts(m, "mutex")) pthread_mutex_unlock(&m->mutex);
  if (starts(m, "rwlock")) pthread_rwlock_unlock(&m->rwlock);
  if (starts(m, "semaphore")) sem_post(&m->semaphore);
  if (locks_file(m)) close(end);
  else if (end >= 0 && (starts(m, "pipe-write") ? read(end, bytes, sizeof bytes) : write(end, "!", 1)) < 1) abort();
}

// What a holder does: it has the thing when `ready` is posted, and keeps it for the whole stall.
NOINLINE void mix_hold(struct mix *m, int end) {
  m->owner = syscall(SYS_gettid);
  take(m, &end);
  sem_post(&m->ready);
  if (is(m->holder, "ended")) return;
  while (sem_wait(&m->begun) != 0) continue;
  sink += is(m->holder, "compute") ? holder_compute(m) : is(m->holder, "chain") ? holder_wait(m) : holder_nap(m);
  give(m, end);
  sink++;
}

static void *hold_on_thread(void *mix) {
  prctl(PR_SET_NAME, "mix-holder");
  mix_hold(mix, ((struct mix *)mix)->ends[1]);
  return NULL;
}

static void *hold_second(void *mix) {
  struct mix *m = mix;
  prctl(PR_SET_NAME, "mix-last");
  m->last = syscall(SYS_gettid);
  pthread_mutex_lock(&m->second);
  sem_post(&m->ready);
  while (sem_wait(&m->begun) != 0) continue;
  sink += holder_nap(m);
  pthread_mutex_unlock(&m->second);
  return NULL;
}

// Connects two sockets of the loopback interface.
static void connect_ends(struct mix *m, int type) {
  struct sockaddr_in to[2] = {{.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
  to[1] = to[0];
  socklen_t length = sizeof *to;
  for (int i = 0; i < 2; i++) {
    m->ends[i] = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    bind(m->ends[i], (struct sockaddr *)&to[i], length);
    getsockname(m->ends[i], (struct sockaddr *)&to[i], &length);
  }
  int server = m->ends[1];
  if (type == SOCK_STREAM && listen(server, 1)) abort();
  if (connect(m->ends[0], (struct sockaddr *)&to[1], length)) abort();
  if (type == SOCK_STREAM) m->ends[1] = accept4(server, NULL, NULL, SOCK_CLOEXEC);
  if (type == SOCK_STREAM ? close(server) : connect(server, (struct sockaddr *)&to[0], length)) abort();
  snprintf(m->target, sizeof m->target, "socket to 127.0.0.1:%d", ntohs(to[1].sin_port));
}

static void make_ends(struct mix *m) {
  int *ends = m->ends;
  ends[0] = ends[1] = -1;
  if (starts(m, "fifo")) {
    mkfifo(m->path, 0600);
    ends[0] = open(m->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ends[1] = open(m->path, O_WRONLY | O_CLOEXEC);
    fcntl(ends[0], F_SETFL, 0);
  } else if (starts(m, "socketpair") || starts(m, "datagram")) {
    if (socketpair(AF_UNIX, (starts(m, "datagram") ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0, ends)) abort();
  } else if (starts(m, "tcp") || starts(m, "udp")) {
    connect_ends(m, starts(m, "tcp") ? SOCK_STREAM : SOCK_DGRAM);
  } else if (locks_file(m)) {
    ends[0] = open(m->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  } else if (is(m->row->cause, "io") && pipe2(ends, O_CLOEXEC)) {
    abort();
  }
  if (starts(m, "pipe-write")) {
    char bytes[4096] = {0};
    int reader = ends[0];
    fcntl(ends[0] = ends[1], F_SETFL, O_NONBLOCK);
    ends[1] = reader;
    while (write(ends[0], bytes, sizeof bytes) > 0) continue;
    fcntl(ends[0], F_SETFL, 0);
  }
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", ends[0]);
  if (ends[0] >= 0 && !m->target[0] && readlink(link, m->target, sizeof m->target - 1) < 0) abort();
}

static void make_locks(struct mix *m) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  if (starts(m, "mutex-recursive")) pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
  if (starts(m, "mutex-checking")) pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
  if (starts(m, "mutex-adaptive")) pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP);
  if (starts(m, "mutex-inheriting")) pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
  if (starts(m, "mutex-shared")) pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  if (strstr(m->row->name, "robust")) pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&m->mutex, &kind);
  pthread_mutex_init(&m->second, NULL);
  pthread_rwlock_init(&m->rwlock, NULL);
  pthread_cond_init(&m->condition, NULL);
  for (sem_t *semaphore = &m->semaphore; semaphore <= &m->begun; semaphore++) sem_init(semaphore, 1, 0);
}

// A child that has nothing open but the other end. The parent changes `m` meanwhile.
static void start_child(struct mix *m) {
  int end = m->ends[1];
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_NAME, "mix-peer");
    if (end >= 0) end = dup2(end, 0);
    syscall(SYS_close_range, 1, ~0u, 0);
    mix_hold(m, end);
    _exit(0);
  }
  m->child = child;
  if (end >= 0) close(end);
  m->ends[1] = -1;
}

// Makes what row `index` waits for and starts its holder, unless that is a task, which has to call mix_hold. The holder
// has the thing once mix_is_ready. `path` is free for a file.
struct mix *mix_make(int index, const char *holder, int milliseconds, const char *path) {
  struct mix *m = mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (m == MAP_FAILED) abort();
  *m = (struct mix){.row = &rows[index], .milliseconds = milliseconds};
  snprintf(m->holder, sizeof m->holder, "%s", holder);
  snprintf(m->path, sizeof m->path, "%s", path);
  make_locks(m);
  make_ends(m);
  if (is(holder, "chain")) {
    m->has_thread[1] = pthread_create(&m->threads[1], NULL, hold_second, m) == 0;
    while (sem_wait(&m->ready) != 0) continue;
  }
  if (is(holder, "process")) start_child(m);
  else if (is(holder, "nobody")) sem_post(&m->ready);
  else if (!is(holder, "task")) m->has_thread[0] = pthread_create(&m->threads[0], NULL, hold_on_thread, m) == 0;
  return m;
}

// A holder that ends is gone then.
bool mix_is_ready(struct mix *m) {
  if (sem_trywait(&m->ready) != 0) return false;
  return !is(m->holder, "ended") || !(m->has_thread[0] = pthread_join(m->threads[0], NULL) != 0);
}

// Leaves return addresses where the frames of the stall will be.
FUNCTION int stale_call(int depth) {
  char old[96];
  int calls = depth > 0 ? stale_call(depth - 1) + 1 : 0;
  __asm__ volatile("" : : "r"(old) : "memory");
  return calls;
}

FUNCTION bool mix_middle(struct mix *m) {
  char old[512];
  __asm__ volatile("" : : "r"(old) : "memory");
  for (int i = 0; i < 2; i++) sem_post(&m->begun);
  return !m->row->wait(m);
}

NOINLINE void mix_enter(struct mix *m) {
  sink += stale_call(12);
  sink += mix_middle(m);
}

// Says what is true of the report, as members of a JSON object.
const char *mix_truth(struct mix *m) {
  bool is_chain = is(m->holder, "chain"), computes = is(m->holder, "compute");
  bool is_owned = is_chain || computes || is(m->holder, "sleep") || is(m->holder, "task");
  bool has_peer = m->child || m->ends[1] >= 0 || (starts(m, "flock") && is(m->holder, "thread"));
  char owners[32] = "", places[64] = "";
  if (is_owned) snprintf(owners, sizeof owners, is_chain ? "%d, %d" : "%d", m->owner, m->last);
  if (is_owned)
    snprintf(places, sizeof places, is_chain ? "\"holder_wait\", \"%s\"" : "\"%s\"",
             computes ? "holder_compute" : "holder_nap");
  snprintf(m->text, sizeof m->text,
           "\"kinds\": [\"%s\"], \"lock\": \"%s\", \"calls\": \"%s\", \"chain\": [\"%s\", \"mix_middle\", "
           "\"mix_enter\"], \"owners\": [%s], \"places\": [%s], \"holder\": %d, \"peers\": [%d], \"target\": \"%s\", "
           "\"times\": [%d, %g]",
           m->row->cause, m->row->lock, m->row->calls, m->row->function, owners, places, m->child ? 0 : m->owner,
           m->child   ? m->child
           : has_peer ? getpid()
                      : 0,
           m->target, m->milliseconds, m->milliseconds / 2.0);
  return m->text;
}

void mix_free(struct mix *m) {
  for (int i = 0; i < 2; i++) {
    if (m->has_thread[i]) pthread_join(m->threads[i], NULL);
    if (m->ends[i] >= 0) close(m->ends[i]);
  }
  if (m->child > 0) waitpid(m->child, NULL, 0);
  unlink(m->path);
  // A task may still be on its way out of mix_hold.
  if (!is(m->holder, "task")) munmap(m, sizeof *m);
}
