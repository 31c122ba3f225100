// The locks of stdio streams, and what a descriptor holds unread.

#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "CLinux.h"

// glibc's _IO_lock_t (sysdeps/nptl/stdio-lock.h), which no header shows.
typedef struct stream_lock {
  int word, count;
  void *owner;
} stream_lock;

bool clinux_knows_stream_locks(void) {
  // Not from fopen(3), which waits for the list of all streams: flockfile(3) uses nothing of a stream but its lock.
  static const stream_lock none;
  union {
    stream_lock lock;
    char room[64];
  } own = {.lock = none};
  FILE stream = {._lock = (void *)&own};
  stream_lock held;
  flockfile(&stream);
  memcpy(&held, &own, sizeof held);
  funlockfile(&stream);
  return held.word != 0 && held.owner == (void *)pthread_self() && own.lock.word == 0 && !own.lock.owner;
}

uint64_t clinux_stream(int number) {
  return (uint64_t)(uintptr_t)(number == 0 ? stdin : number == 1 ? stdout : number == 2 ? stderr : NULL);
}

uint64_t clinux_stream_lock_offset(void) { return offsetof(FILE, _lock); }

// The descriptor of a thread has some 2,300 bytes; all of the words that are looked for are below this offset.
#define DESCRIPTOR_BYTES 2048u
#define DESCRIPTOR_WORDS (DESCRIPTOR_BYTES / sizeof(int))
#define FINDER_STACK_BYTES (128u << 10)

uint64_t clinux_thread_end_offset(void) {
  // set_tid_address(2). Needs CONFIG_CHECKPOINT_RESTORE.
  int *address = NULL;
  if (prctl(PR_GET_TID_ADDRESS, &address, 0, 0, 0) != 0) return 0;
  uint64_t offset = (uint64_t)(uintptr_t)address - (uint64_t)pthread_self();
  return address && offset < DESCRIPTOR_BYTES ? offset : 0;
}

// Notes in which words the calling thread's descriptor has the thread's id.
static void *find_id(void *context) {
  bool *has_id = context;
  const char *descriptor = (const char *)pthread_self();
  int word, id = gettid();
  for (size_t index = 0; index < DESCRIPTOR_WORDS; index++) {
    memcpy(&word, descriptor + index * sizeof word, sizeof word);
    has_id[index] = word == id;
  }
  return NULL;
}

uint64_t clinux_thread_id_offset(void) {
  // Ids are small in a container, and one thread has such a number in other words, too.
  bool has_id[2][DESCRIPTOR_WORDS];
  pthread_t other;
  uint64_t found = 0;
  find_id(has_id[0]);
  if (clinux_start_thread(&other, FINDER_STACK_BYTES, 0, find_id, has_id[1]) != 0) return 0;
  pthread_join(other, NULL);
  for (size_t index = 0; index < DESCRIPTOR_WORDS; index++) {
    if (!has_id[0][index] || !has_id[1][index]) continue;
    if (found) return 0;
    found = index * sizeof(int);
  }
  return found;
}

long clinux_unread_bytes(int descriptor) {
  int type = SOCK_STREAM, count = 0;
  socklen_t length = sizeof type;
  // Of a datagram socket FIONREAD says only the next datagram's size (udp(7)).
  if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type != SOCK_STREAM) return -1;
  struct pollfd file = {.fd = descriptor, .events = POLLIN};
  if (poll(&file, 1, 0) != 1 || !(file.revents & (POLLIN | POLLHUP))) return -1;
  return ioctl(descriptor, FIONREAD, &count) == 0 ? count : -1;
}
