// Calls that return early with EINTR after a signal or a stop by ptrace(2) (signal(7)). None uses the wall clock.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "CStalls.h"

static struct timespec span(uint32_t milliseconds) {
  return (struct timespec){milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
}

static struct timespec deadline(uint32_t milliseconds) {
  struct timespec now, left = span(milliseconds);
  clock_gettime(CLOCK_MONOTONIC, &now);
  long nanoseconds = now.tv_nsec + left.tv_nsec;
  return (struct timespec){now.tv_sec + left.tv_sec + nanoseconds / 1000000000, nanoseconds % 1000000000};
}

static int wait_in_nanosleep(uint32_t milliseconds) {
  struct timespec time = span(milliseconds);
  return nanosleep(&time, NULL) == 0 ? 0 : errno;
}

static int wait_in_clock_nanosleep(uint32_t milliseconds) {
  struct timespec end = deadline(milliseconds);
  return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
}

static int wait_in_poll(uint32_t milliseconds) { return poll(NULL, 0, (int)milliseconds) == 0 ? 0 : errno; }

static int wait_in_select(uint32_t milliseconds) {
  struct timeval time = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000};
  return select(0, NULL, NULL, NULL, &time) == 0 ? 0 : errno;
}

static int wait_in_epoll_wait(uint32_t milliseconds) {
  struct epoll_event event;
  int descriptor = epoll_create1(EPOLL_CLOEXEC);
  if (descriptor < 0) return errno;
  int result = epoll_wait(descriptor, &event, 1, (int)milliseconds) == 0 ? 0 : errno;
  close(descriptor);
  return result;
}

static int wait_in_sem_clockwait(uint32_t milliseconds) {
  sem_t semaphore;
  struct timespec end = deadline(milliseconds);
  sem_init(&semaphore, 0, 0);
  int result = sem_clockwait(&semaphore, CLOCK_MONOTONIC, &end) == 0 ? EPROTO : errno;
  sem_destroy(&semaphore);
  return result == ETIMEDOUT ? 0 : result;
}

static int wait_in_futex(uint32_t milliseconds) {
  uint32_t word = 0;
  struct timespec time = span(milliseconds);
  long result = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);
  return result == 0 ? EPROTO : errno == ETIMEDOUT ? 0 : errno;
}

static int wait_in_recv(uint32_t milliseconds) {
  int ends[2];
  char byte;
  struct timeval time = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno;
  setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  int result = recv(ends[0], &byte, 1, 0) >= 0 ? EPROTO : errno;
  close(ends[0]);
  close(ends[1]);
  return result == EAGAIN ? 0 : result;
}

static const struct {
  const char *name;
  int (*wait)(uint32_t milliseconds);
} calls[STALLS_INTERRUPTIBLE_CALLS] = {
    {"nanosleep", wait_in_nanosleep},
    {"clock_nanosleep", wait_in_clock_nanosleep},
    {"poll", wait_in_poll},
    {"select", wait_in_select},
    {"epoll_wait", wait_in_epoll_wait},
    {"sem_clockwait", wait_in_sem_clockwait},
    {"futex", wait_in_futex},
    {"recv", wait_in_recv},
};

const char *stalls_interruptible_call_name(int32_t kind) { return calls[kind % STALLS_INTERRUPTIBLE_CALLS].name; }

int32_t stalls_wait_interruptibly(int32_t kind, uint32_t milliseconds) {
  return calls[kind % STALLS_INTERRUPTIBLE_CALLS].wait(milliseconds);
}
