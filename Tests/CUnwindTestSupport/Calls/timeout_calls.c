// Calls with a timeout. The stack has to show the function's name.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "Calls/blocking_calls.h"

// Passes `result` through a volatile, so that no call is a tail call that removes the function's frame.
#define BLOCK(name) __attribute__((noinline)) int cunwind_test_block_in_##name(cunwind_test_fixture *f)
#define TIMED_OUT_WITH(expected) return result < 0 && errno == (expected) ? 0 : result < 0 ? errno : EPROTO
#define ENDED_WITH_0 return result == 0 ? 0 : result < 0 ? errno : EPROTO

BLOCK(nanosleep) {
  struct timespec span = cunwind_test_span(f);
  volatile int result = nanosleep(&span, NULL);
  ENDED_WITH_0;
}

BLOCK(clock_nanosleep) {
  struct timespec deadline = cunwind_test_deadline(f, CLOCK_MONOTONIC);
  volatile int result = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
  return result;
}

BLOCK(usleep) {
  volatile int result = usleep(f->milliseconds * 1000);
  ENDED_WITH_0;
}

BLOCK(sleep) {
  (void)f;
  volatile unsigned left = sleep(1);
  return left == 0 ? 0 : EINTR;
}

BLOCK(poll) {
  struct pollfd file = {f->pipe[0], POLLIN, 0};
  volatile int result = poll(&file, 1, (int)f->milliseconds);
  ENDED_WITH_0;
}

BLOCK(ppoll) {
  struct pollfd file = {f->pipe[0], POLLIN, 0};
  struct timespec span = cunwind_test_span(f);
  volatile int result = ppoll(&file, 1, &span, NULL);
  ENDED_WITH_0;
}

BLOCK(select) {
  fd_set files;
  FD_ZERO(&files);
  FD_SET(f->pipe[0], &files);
  struct timeval span = {f->milliseconds / 1000, (long)(f->milliseconds % 1000) * 1000};
  volatile int result = select(f->pipe[0] + 1, &files, NULL, NULL, &span);
  ENDED_WITH_0;
}

BLOCK(pselect) {
  fd_set files;
  FD_ZERO(&files);
  FD_SET(f->pipe[0], &files);
  struct timespec span = cunwind_test_span(f);
  volatile int result = pselect(f->pipe[0] + 1, &files, NULL, NULL, &span, NULL);
  ENDED_WITH_0;
}

BLOCK(epoll_wait) {
  struct epoll_event event;
  volatile int result = epoll_wait(f->epoll, &event, 1, (int)f->milliseconds);
  ENDED_WITH_0;
}

BLOCK(epoll_pwait) {
  struct epoll_event event;
  sigset_t none;
  sigemptyset(&none);
  volatile int result = epoll_pwait(f->epoll, &event, 1, (int)f->milliseconds, &none);
  ENDED_WITH_0;
}

BLOCK(sem_clockwait) {
  struct timespec deadline = cunwind_test_deadline(f, CLOCK_MONOTONIC);
  volatile int result = sem_clockwait(&f->semaphore, CLOCK_MONOTONIC, &deadline);
  TIMED_OUT_WITH(ETIMEDOUT);
}

BLOCK(pthread_cond_timedwait) {
  struct timespec deadline = cunwind_test_deadline(f, CLOCK_REALTIME);
  pthread_mutex_lock(&f->condition_mutex);
  volatile int result = pthread_cond_timedwait(&f->condition, &f->condition_mutex, &deadline);
  pthread_mutex_unlock(&f->condition_mutex);
  return result == ETIMEDOUT ? 0 : result == 0 ? EPROTO : result;
}

BLOCK(pthread_mutex_timedlock) {
  struct timespec deadline = cunwind_test_deadline(f, CLOCK_REALTIME);
  volatile int result = pthread_mutex_timedlock(&f->mutex, &deadline);
  return result == ETIMEDOUT ? 0 : result == 0 ? EPROTO : result;
}

BLOCK(futex) {
  struct timespec span = cunwind_test_span(f);
  volatile long result = syscall(SYS_futex, &f->word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, &span, NULL, 0);
  TIMED_OUT_WITH(ETIMEDOUT);
}

BLOCK(recv) {
  char byte;
  volatile ssize_t result = recv(f->pair[0], &byte, 1, 0);
  TIMED_OUT_WITH(EAGAIN);
}

BLOCK(accept) {
  volatile int result = accept(f->listener, NULL, NULL);
  TIMED_OUT_WITH(EAGAIN);
}

BLOCK(connect) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  // An abstract address: its first byte is 0.
  for (size_t index = 0; f->full_path[index]; index++) address.sun_path[index + 1] = f->full_path[index];
  int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct timeval span = {f->milliseconds / 1000, (long)(f->milliseconds % 1000) * 1000};
  setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &span, sizeof span);
  volatile int result = connect(file, (struct sockaddr *)&address, sizeof address);
  int error = errno;
  close(file);
  return result < 0 && error == EAGAIN ? 0 : result < 0 ? error : EPROTO;
}

BLOCK(semtimedop) {
  struct sembuf take = {0, -1, 0};
  struct timespec span = cunwind_test_span(f);
  volatile int result = semtimedop(f->semaphores, &take, 1, &span);
  TIMED_OUT_WITH(EAGAIN);
}

BLOCK(sigtimedwait) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  struct timespec span = cunwind_test_span(f);
  volatile int result = sigtimedwait(&set, NULL, &span);
  TIMED_OUT_WITH(EAGAIN);
}

BLOCK(io_getevents) {
  struct io_event event;
  struct timespec span = cunwind_test_span(f);
  volatile long result = syscall(SYS_io_getevents, f->aio, 1, 1, &event, &span);
  ENDED_WITH_0;
}

#define ENTRY(name, by_stop) \
  { {#name, true, by_stop}, cunwind_test_block_in_##name, NULL }

// signal(7) lists the calls that a stop ends. Measured on Linux 6.18: the same.
const cunwind_test_entry cunwind_test_timed_calls[] = {
    ENTRY(nanosleep, false),
    ENTRY(clock_nanosleep, false),
    ENTRY(usleep, false),
    ENTRY(sleep, false),
    ENTRY(poll, false),
    ENTRY(ppoll, false),
    ENTRY(select, false),
    ENTRY(pselect, false),
    ENTRY(epoll_wait, true),
    ENTRY(epoll_pwait, true),
    ENTRY(sem_clockwait, false),
    ENTRY(pthread_cond_timedwait, false),
    ENTRY(pthread_mutex_timedlock, false),
    ENTRY(futex, false),
    ENTRY(recv, true),
    ENTRY(accept, true),
    ENTRY(connect, true),
    ENTRY(semtimedop, true),
    ENTRY(sigtimedwait, true),
    ENTRY(io_getevents, true),
};
const size_t cunwind_test_timed_call_count = sizeof cunwind_test_timed_calls / sizeof cunwind_test_timed_calls[0];
