// The objects on which blocking calls block.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "Calls/blocking_calls.h"

static bool fill(int file) {
  static const char bytes[4096];
  int flags = fcntl(file, F_GETFL);
  fcntl(file, F_SETFL, flags | O_NONBLOCK);
  while (write(file, bytes, sizeof bytes) > 0) continue;
  return fcntl(file, F_SETFL, flags) == 0;
}

static int listening(const char *abstract_name, int backlog) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path + 1, abstract_name, sizeof address.sun_path - 2);
  int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0 || bind(file, (struct sockaddr *)&address, sizeof address) < 0 || listen(file, backlog) < 0) return -1;
  return file;
}

// Connects until a further connect would block.
static bool fill_backlog(const char *abstract_name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path + 1, abstract_name, sizeof address.sun_path - 2);
  for (int tries = 0; tries < 16; tries++) {
    int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file < 0) return false;
    // A connection that was not accepted stays in the backlog when its other end is closed.
    bool is_full = connect(file, (struct sockaddr *)&address, sizeof address) < 0 && errno == EAGAIN;
    close(file);
    if (is_full) return true;
  }
  return false;
}

static int open_lock_file(int like) {
  char path[64];
  if (like < 0) return memfd_create("cunwind-test", MFD_CLOEXEC);
  snprintf(path, sizeof path, "/proc/self/fd/%d", like);
  return open(path, O_RDWR | O_CLOEXEC);
}

bool cunwind_test_fixture_init(cunwind_test_fixture *f, uint32_t milliseconds) {
  static uint32_t serial;
  memset(f, 0, sizeof *f);
  f->milliseconds = milliseconds;
  f->file = f->other_file = f->epoll = f->message_queue = f->semaphores = -1;
  uint32_t number = __atomic_fetch_add(&serial, 1, __ATOMIC_RELAXED);
  char name[64];
  snprintf(name, sizeof name, "cunwind-test-%d-%u", (int)getpid(), number);
  snprintf(f->full_path, sizeof f->full_path, "%.50s-full", name);
  if (pipe2(f->pipe, O_CLOEXEC) < 0 || pipe2(f->full_pipe, O_CLOEXEC) < 0 || !fill(f->full_pipe[1])) return false;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, f->pair) < 0) return false;
  struct timeval span = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000};
  f->listener = listening(name, 1);
  f->full_listener = listening(f->full_path, 0);
  if (f->listener < 0 || f->full_listener < 0 || !fill_backlog(f->full_path)) return false;
  if (setsockopt(f->pair[0], SOL_SOCKET, SO_RCVTIMEO, &span, sizeof span) < 0) return false;
  if (setsockopt(f->listener, SOL_SOCKET, SO_RCVTIMEO, &span, sizeof span) < 0) return false;
  f->epoll = epoll_create1(EPOLL_CLOEXEC);
  f->file = open_lock_file(-1);
  f->other_file = open_lock_file(f->file);
  f->message_queue = msgget(IPC_PRIVATE, 0600);
  f->semaphores = semget(IPC_PRIVATE, 1, 0600);
  if (f->epoll < 0 || f->file < 0 || f->other_file < 0 || f->message_queue < 0 || f->semaphores < 0) return false;
  if (syscall(SYS_io_setup, 1, &f->aio) < 0) return false;
  if (sem_init(&f->semaphore, 0, 0) < 0) return false;
  pthread_mutex_init(&f->mutex, NULL);
  pthread_mutex_init(&f->condition_mutex, NULL);
  pthread_cond_init(&f->condition, NULL);
  pthread_rwlock_init(&f->rwlock, NULL);
  return pthread_mutex_lock(&f->mutex) == 0;  // Never released: the blocked call waits for it.
}

void cunwind_test_fixture_destroy(cunwind_test_fixture *f) {
  const int files[] = {f->pipe[0], f->pipe[1],  f->full_pipe[0],  f->full_pipe[1], f->pair[0],   f->pair[1],
                       f->epoll,   f->listener, f->full_listener, f->file,         f->other_file};
  for (size_t index = 0; index < sizeof files / sizeof files[0]; index++) {
    if (files[index] > 0) close(files[index]);
  }
  if (f->message_queue >= 0) msgctl(f->message_queue, IPC_RMID, NULL);
  if (f->semaphores >= 0) semctl(f->semaphores, 0, IPC_RMID);
  if (f->aio) syscall(SYS_io_destroy, f->aio);
}
