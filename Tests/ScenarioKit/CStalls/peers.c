#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "CStalls.h"

// What a child does after fork(2): async-signal-safe calls only. Standard input is the descriptor that it uses, standard
// output the pipe by which it says that it is ready.
_Noreturn static void be_peer(stalls_peer_kind kind, const char *path, uint32_t milliseconds) {
  prctl(PR_SET_NAME, "demo-peer");
  int file = path ? open(path, O_RDWR | O_CLOEXEC) : STDIN_FILENO;
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (kind == STALLS_PEER_FLOCK) flock(file, LOCK_EX);
  if (kind == STALLS_PEER_RECORD_LOCK) fcntl(file, F_SETLK, &whole);
  static const char much[100000];
  char byte = '!';
  if (write(STDOUT_FILENO, &byte, 1) != 1) _exit(1);
  if (kind == STALLS_PEER_FILLER && write(file, much, sizeof much) >= 0) _exit(0);
  struct timespec left = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
  if (kind == STALLS_PEER_WRITER && write(file, &byte, 1) != 1) _exit(1);
  char buffer[4096];
  if (kind == STALLS_PEER_READER) {
    while (read(file, buffer, sizeof buffer) > 0) continue;
  }
  // Frees the lock and closes the other end.
  _exit(0);
}

int32_t stalls_start_peer(stalls_peer_kind kind, int32_t descriptor, const char *path, uint32_t milliseconds) {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return -1;
  pid_t child = fork();
  if (child == 0) {
    if (descriptor >= 0) dup2(descriptor, STDIN_FILENO);
    dup2(ready[1], STDOUT_FILENO);
    // The ends that the parent keeps must not stay open here.
    syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
    be_peer(kind, path, milliseconds);
  }
  close(ready[1]);
  char byte;
  ssize_t count;
  do {
    count = read(ready[0], &byte, 1);
  } while (count < 0 && errno == EINTR);
  close(ready[0]);
  return count == 1 ? child : -1;
}

void *stalls_replace_stdout(int32_t descriptor) {
  FILE *stream = fdopen(descriptor, "w");
  FILE *before = stdout;
  if (stream) stdout = stream;
  return stream ? before : NULL;
}

void stalls_restore_stdout(void *before) {
  FILE *stream = stdout;
  stdout = before;
  fclose(stream);
}

void stalls_lock_stdout(void) { flockfile(stdout); }

void stalls_unlock_stdout(void) { funlockfile(stdout); }

void stalls_print_much(size_t count) {
  for (size_t index = 0; index < count; index++) putchar('!');
  fflush(stdout);
}

void stalls_print_line(void) {
  // A second call, so that the first one does not become a jump.
  puts("!");
  errno = 0;
}

// The seconds for which close(2) waits at most.
static const int longest_close = 30;

bool stalls_make_unsent_data(int32_t ends[2]) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int sender = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int reader = -1;
  if (bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0 &&
      getsockname(listener, (struct sockaddr *)&address, &length) == 0 &&
      (connect(sender, (struct sockaddr *)&address, length) == 0 || errno == EINPROGRESS))
    reader = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  close(listener);
  struct linger linger = {.l_onoff = 1, .l_linger = longest_close};
  if (reader < 0 || setsockopt(sender, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) != 0) {
    close(sender);
    return false;
  }
  char bytes[65536] = {0};
  // The buffers grow while they are filled: they are full once a short wait has not made room.
  struct pollfd room = {.fd = sender, .events = POLLOUT};
  while (poll(&room, 1, 50) == 1) {
    while (write(sender, bytes, sizeof bytes) > 0) continue;
  }
  // close(2) of a socket that does not block does not wait.
  fcntl(sender, F_SETFL, 0);
  ends[0] = sender;
  ends[1] = reader;
  return true;
}

void stalls_read_all(int32_t reader) {
  char bytes[65536];
  while (read(reader, bytes, sizeof bytes) > 0) continue;
  close(reader);
}
