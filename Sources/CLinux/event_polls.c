// One-shot polls of descriptors by the kernel's asynchronous I/O (IOCB_CMD_POLL, Linux 4.18).
//
// A plain poll(2) of an epoll set asks again after it is woken, whether the set is readable, and sees nothing if the
// thread that waits in epoll_wait(2) has taken the event meanwhile. This poll is complete as soon as the set is woken
// for an event (fs/aio.c, aio_poll_wake): no event is lost, whatever that thread does.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "CLinux.h"

_Static_assert(sizeof(struct iocb) == sizeof(struct clinux_poll), "struct clinux_poll has the size of struct iocb");

int clinux_create_polls(uint64_t *polls, unsigned capacity) {
  aio_context_t context = 0;
  if (syscall(SYS_io_setup, capacity, &context) != 0) return errno;
  *polls = context;
  return 0;
}

int clinux_begin_poll(uint64_t polls, struct clinux_poll *poll, int descriptor, uint64_t identifier) {
  struct iocb request;
  memset(&request, 0, sizeof request);
  request.aio_lio_opcode = IOCB_CMD_POLL;
  request.aio_fildes = (uint32_t)descriptor;
  request.aio_buf = POLLIN;
  request.aio_data = identifier;
  memcpy(poll, &request, sizeof request);
  struct iocb *pointer = (struct iocb *)poll;
  long submitted = syscall(SYS_io_submit, (aio_context_t)polls, 1, &pointer);
  return submitted == 1 ? 0 : submitted < 0 ? errno : EAGAIN;
}

void clinux_cancel_poll(uint64_t polls, struct clinux_poll *poll) {
  struct io_event event;
  // A poll that is complete already is an error that does not matter.
  syscall(SYS_io_cancel, (aio_context_t)polls, (struct iocb *)poll, &event);
}

bool clinux_wait_for_poll(uint64_t polls, uint64_t *identifier) {
  struct io_event event;
  long count;
  do {
    count = syscall(SYS_io_getevents, (aio_context_t)polls, 1, 1, &event, NULL);
  } while (count == 0 || (count < 0 && errno == EINTR));
  if (count == 1) *identifier = event.data;
  return count == 1;
}

void clinux_destroy_polls(uint64_t polls) { syscall(SYS_io_destroy, (aio_context_t)polls); }
