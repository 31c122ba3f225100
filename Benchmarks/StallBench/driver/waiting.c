// Stalls that wait for input and output, for the time, for pages and for child processes.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define SECONDS(milliseconds) \
  { (milliseconds) / 1000, (long)((milliseconds) % 1000) * 1000000 }

static volatile uint64_t bits;
static char buffer[1 << 16];

// Input and output

CASE(read_answer) {
  int ends[2];
  if (pipe(ends)) abort();
  bench_write_later(ends[1], milliseconds);
  ssize_t result;
  while ((result = read(ends[0], buffer, 8)) < 0) NOTE(result);
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
  ssize_t result;
  while ((result = read(client, buffer, 8)) < 0) NOTE(result);
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
  ssize_t result;
  while ((result = read(event, buffer, 8)) < 0) NOTE(result);
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
  // A signal may also end it when a part is written.
  for (ssize_t left = 8192, sent; left > 0; left -= sent > 0 ? sent : 0) {
    if ((sent = write(ends[1], buffer, (size_t)left)) < left) bench_early_returns++;
  }
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
  bits += (uint64_t) * (volatile char *)late.page;
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

const struct bench_case bench_waiting[] = {
    ROW("glib-a", "pipe", read_answer, "io", 250),
    ROW("glib-a", "socket-limit", receive_reply, "io", 250),
    ROW("glib-a", "poll", poll_device, "io", 250),
    ROW("glib-a", "nanosleep", retry_later, "sleep", 250),
    ROW("glib-a", "usleep-long", wait_a_little, "sleep", 1000),
    ROW("glib-a", "page-read", open_mapped_book, "paging", 250),
    ROW("glib-a", "child", convert_image, "child", 250),
    ROW("glib-b", "network", fetch_page, "io", 250),
    ROW("glib-b", "select", select_device, "io", 250),
    ROW("glib-b", "epoll", epoll_device, "io", 250),
    ROW("glib-b", "fsync", flush_journal, "io", 300),
    ROWS("glib-b", "repeated", await_event, "io", 200, 3, 90),
    ROW("glib-b", "sleep-until", wait_until, "sleep", 250),
    ROW("glib-b", "sleep-poll", pause_in_poll, "sleep", 250),
    ROW("glib-b", "sleep-select", pause_in_select, "sleep", 250),
    ROW("glib-b", "sleep-often", retry_often, "sleep", 300),
    ROW("glib-b", "page-write", edit_mapped_book, "paging", 250),
    ROW("glib-b", "script", run_script, "child", 250),
    ROW("thread", "thread-pipe", read_answer, "io", 120),
    ROW("thread", "thread-full-pipe", send_upload, "io", 250),
    ROW("thread", "thread-nanosleep", retry_later, "sleep", 250),
    ROW("thread", "thread-child", convert_image, "child", 250),
    ROW("cf", "cf-socket", receive_reply, "io", 250),
    ROW("cf", "cf-network", fetch_page, "io", 250),
    ROW("cf", "cf-sleep", wait_a_little, "sleep", 120),
    ROW("cf", "cf-page", open_mapped_book, "paging", 250),
    {0},
};
