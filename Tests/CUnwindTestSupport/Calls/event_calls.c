// Calls that block until another thread or process wakes them.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Calls/blocking_calls.h"

#define BLOCK(name) __attribute__((noinline)) int cunwind_test_block_in_##name(cunwind_test_fixture *f)
#define FEED(name) static void feed_##name(cunwind_test_fixture *f)

static void wait_a_while(const cunwind_test_fixture *f) {
  struct timespec span = cunwind_test_span(f);
  while (clock_nanosleep(CLOCK_MONOTONIC, 0, &span, &span) == EINTR) continue;
}

static void wait_for(const cunwind_test_fixture *f, const uint32_t *flag, uint32_t value) {
  struct timespec span = {0, 100000};
  while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != value && !__atomic_load_n(&f->is_stopping, __ATOMIC_ACQUIRE)) {
    nanosleep(&span, NULL);
  }
}

// The feeder takes the lock, the blocker sees that and blocks, the feeder releases the lock, and the blocker takes it
// and reports that. Without these steps the two would race for the lock.
static void wait_until_held(const cunwind_test_fixture *f) { wait_for(f, &f->is_held, 1); }
static void say_passed(cunwind_test_fixture *f) { __atomic_store_n(&f->is_held, 0, __ATOMIC_RELEASE); }
static void hold_a_while(cunwind_test_fixture *f) {
  __atomic_store_n(&f->is_held, 1, __ATOMIC_RELEASE);
  wait_a_while(f);
}
static void wait_until_passed(const cunwind_test_fixture *f) { wait_for(f, &f->is_held, 0); }

BLOCK(read) {
  char byte;
  volatile ssize_t result = read(f->pipe[0], &byte, 1);
  return result == 1 ? 0 : errno;
}
FEED(read) {
  wait_a_while(f);
  if (write(f->pipe[1], "", 1) != 1) return;
}

BLOCK(write) {
  static const char bytes[4096];
  volatile ssize_t result = write(f->full_pipe[1], bytes, sizeof bytes);
  return result == sizeof bytes ? 0 : result < 0 ? errno : EPROTO;
}
FEED(write) {
  char bytes[4096];
  wait_a_while(f);
  if (read(f->full_pipe[0], bytes, sizeof bytes) < 0) return;
}

struct message {
  long type;
  char byte;
};

BLOCK(msgrcv) {
  struct message message;
  volatile ssize_t result = msgrcv(f->message_queue, &message, sizeof message.byte, 0, 0);
  return result == 1 ? 0 : errno;
}
FEED(msgrcv) {
  struct message message = {1, 0};
  wait_a_while(f);
  msgsnd(f->message_queue, &message, sizeof message.byte, IPC_NOWAIT);
}

BLOCK(wait4) {
  pid_t child = fork();
  if (child == 0) {
    wait_a_while(f);
    _exit(0);
  }
  volatile pid_t result = wait4(child, NULL, 0, NULL);
  int error = errno;
  if (result != child) wait4(child, NULL, 0, NULL);
  return result == child ? 0 : error;
}

BLOCK(flock) {
  wait_until_held(f);
  volatile int result = flock(f->file, LOCK_EX);
  int error = errno;
  flock(f->file, LOCK_UN);
  say_passed(f);
  return result == 0 ? 0 : error;
}
FEED(flock) {
  flock(f->other_file, LOCK_EX);
  hold_a_while(f);
  flock(f->other_file, LOCK_UN);
  wait_until_passed(f);
}

BLOCK(fcntl) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  wait_until_held(f);
  volatile int result = fcntl(f->file, F_SETLKW, &lock);
  int error = errno;
  lock.l_type = F_UNLCK;
  fcntl(f->file, F_SETLK, &lock);
  say_passed(f);
  return result == 0 ? 0 : error;
}
// An open file description's lock, because a process never waits for its own traditional ones.
FEED(fcntl) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  fcntl(f->other_file, F_OFD_SETLKW, &lock);
  hold_a_while(f);
  lock.l_type = F_UNLCK;
  fcntl(f->other_file, F_OFD_SETLK, &lock);
  wait_until_passed(f);
}

BLOCK(sem_wait) {
  volatile int result = sem_wait(&f->semaphore);
  return result == 0 ? 0 : errno;
}
FEED(sem_wait) {
  wait_a_while(f);
  sem_post(&f->semaphore);
}

BLOCK(pthread_cond_wait) {
  pthread_mutex_lock(&f->condition_mutex);
  uint32_t before = f->word;
  volatile int result = 0;
  while (f->word == before) result = pthread_cond_wait(&f->condition, &f->condition_mutex);
  pthread_mutex_unlock(&f->condition_mutex);
  return result;
}
FEED(pthread_cond_wait) {
  wait_a_while(f);
  pthread_mutex_lock(&f->condition_mutex);
  f->word++;
  pthread_cond_broadcast(&f->condition);
  pthread_mutex_unlock(&f->condition_mutex);
}

BLOCK(pthread_mutex_lock) {
  wait_until_held(f);
  volatile int result = pthread_mutex_lock(&f->condition_mutex);
  if (result == 0) pthread_mutex_unlock(&f->condition_mutex);
  say_passed(f);
  return result;
}
FEED(pthread_mutex_lock) {
  pthread_mutex_lock(&f->condition_mutex);
  hold_a_while(f);
  pthread_mutex_unlock(&f->condition_mutex);
  wait_until_passed(f);
}

BLOCK(pthread_rwlock_rdlock) {
  wait_until_held(f);
  volatile int result = pthread_rwlock_rdlock(&f->rwlock);
  if (result == 0) pthread_rwlock_unlock(&f->rwlock);
  say_passed(f);
  return result;
}
FEED(pthread_rwlock_rdlock) {
  pthread_rwlock_wrlock(&f->rwlock);
  hold_a_while(f);
  pthread_rwlock_unlock(&f->rwlock);
  wait_until_passed(f);
}

static void *live_a_while(void *context) {
  wait_a_while(context);
  return NULL;
}

BLOCK(pthread_join) {
  pthread_t thread;
  int failed = pthread_create(&thread, NULL, live_a_while, f);
  if (failed) return failed;
  volatile int result = pthread_join(thread, NULL);
  return result;
}

#define FED(name, feed) \
  { {#name, false, false}, cunwind_test_block_in_##name, feed }

const cunwind_test_entry cunwind_test_fed_calls[] = {
    FED(read, feed_read),
    FED(write, feed_write),
    FED(msgrcv, feed_msgrcv),
    FED(wait4, NULL),
    FED(flock, feed_flock),
    FED(fcntl, feed_fcntl),
    FED(sem_wait, feed_sem_wait),
    FED(pthread_cond_wait, feed_pthread_cond_wait),
    FED(pthread_mutex_lock, feed_pthread_mutex_lock),
    FED(pthread_rwlock_rdlock, feed_pthread_rwlock_rdlock),
    FED(pthread_join, NULL),
};
const size_t cunwind_test_fed_call_count = sizeof cunwind_test_fed_calls / sizeof cunwind_test_fed_calls[0];
