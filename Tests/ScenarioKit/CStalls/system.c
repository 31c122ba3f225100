#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <pthread.h>
#include <resolv.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "CStalls.h"

bool stalls_wait_in_epoll(int32_t milliseconds) {
  int descriptor = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event;
  bool is_interrupted = epoll_wait(descriptor, &event, 1, milliseconds) != 0;
  close(descriptor);
  return is_interrupted;
}

static _Thread_local cpu_set_t all_processors;

void stalls_pin_thread(void) {
  if (sched_getaffinity(0, sizeof all_processors, &all_processors) != 0) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int processor = 0; processor < CPU_SETSIZE && CPU_COUNT(&one) == 0; processor++) {
    if (CPU_ISSET(processor, &all_processors)) CPU_SET(processor, &one);
  }
  sched_setaffinity(0, sizeof one, &one);
}

void stalls_unpin_thread(void) { sched_setaffinity(0, sizeof all_processors, &all_processors); }

bool stalls_set_default_stack(size_t bytes) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  bool is_set = pthread_attr_setstacksize(&attributes, bytes) == 0 && pthread_setattr_default_np(&attributes) == 0;
  pthread_attr_destroy(&attributes);
  return is_set;
}

struct thread_start {
  void (*work)(void *);
  void *argument;
};

static void *run_thread(void *data) {
  struct thread_start start = *(struct thread_start *)data;
  free(data);
  start.work(start.argument);
  return NULL;
}

bool stalls_start_thread(size_t stack_bytes, int32_t priority, void (*work)(void *), void *argument) {
  pthread_attr_t attributes;
  struct thread_start *start = malloc(sizeof *start);
  if (!start || pthread_attr_init(&attributes) != 0) {
    free(start);
    return false;
  }
  *start = (struct thread_start){work, argument};
  struct sched_param parameters = {.sched_priority = priority};
  bool is_right = pthread_attr_setstacksize(&attributes, stack_bytes) == 0 &&
                  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0;
  // A thread that a real-time thread starts is no real-time thread unless it is to be one.
  is_right = is_right && pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED) == 0 &&
             pthread_attr_setschedpolicy(&attributes, priority > 0 ? SCHED_RR : SCHED_OTHER) == 0 &&
             pthread_attr_setschedparam(&attributes, &parameters) == 0;
  pthread_t thread;
  bool is_started = is_right && pthread_create(&thread, &attributes, run_thread, start) == 0;
  pthread_attr_destroy(&attributes);
  if (!is_started) free(start);
  return is_started;
}

int32_t stalls_open_event(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void stalls_signal_event(int32_t descriptor) {
  // Fails only if the counter is full.
  eventfd_write(descriptor, 1);
}

struct loader_call {
  void (*work)(void *);
  void *argument;
};

static int call_out(struct dl_phdr_info *info, size_t size, void *data) {
  (void)info;
  (void)size;
  struct loader_call *call = data;
  call->work(call->argument);
  // Ends the iteration after the first image.
  return 1;
}

void stalls_with_loader_lock(void (*work)(void *), void *argument) {
  struct loader_call call = {work, argument};
  dl_iterate_phdr(call_out, &call);
}

#define HANDLER_STACK_BYTES (64 << 10)

static atomic_bool is_handled;
static uint32_t handler_milliseconds;

static void sleep_in_handler(int number) {
  (void)number;
  int before = errno;
  struct timespec left = {handler_milliseconds / 1000, handler_milliseconds % 1000 * 1000000l};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
  errno = before;
  atomic_store(&is_handled, true);
}

static void *send_signal(void *target) {
  struct timespec span = {0, 10000000};
  nanosleep(&span, NULL);
  pthread_kill(*(pthread_t *)target, SIGUSR2);
  return NULL;
}

bool stalls_sleep_in_handler(uint32_t milliseconds) {
  stack_t stack = {.ss_sp = malloc(HANDLER_STACK_BYTES), .ss_size = HANDLER_STACK_BYTES}, stack_before;
  struct sigaction action = {.sa_handler = sleep_in_handler, .sa_flags = SA_ONSTACK}, action_before;
  if (!stack.ss_sp) return false;
  atomic_store(&is_handled, false);
  handler_milliseconds = milliseconds;
  sigaltstack(&stack, &stack_before);
  sigaction(SIGUSR2, &action, &action_before);
  // A child of one of libdispatch's threads has nearly all signals blocked.
  sigset_t handled, blocked_before;
  sigemptyset(&handled);
  sigaddset(&handled, SIGUSR2);
  pthread_sigmask(SIG_UNBLOCK, &handled, &blocked_before);
  pthread_t self = pthread_self(), sender;
  bool is_sent = pthread_create(&sender, NULL, send_signal, &self) == 0;
  // Computes, so that the signal comes at any instruction.
  while (is_sent && !atomic_load_explicit(&is_handled, memory_order_relaxed)) continue;
  if (is_sent) pthread_join(sender, NULL);
  pthread_sigmask(SIG_SETMASK, &blocked_before, NULL);
  sigaction(SIGUSR2, &action_before, NULL);
  sigaltstack(&stack_before, NULL);
  free(stack.ss_sp);
  return is_sent;
}

// From dispatch/once.h, which only a Swift toolchain has on its include path. dispatch_once_t is a word, and libdispatch exports
// the function.
extern void dispatch_once_f(intptr_t *predicate, void *context, void (*function)(void *));

void stalls_once(intptr_t *token, void (*work)(void *), void *argument) {
  dispatch_once_f(token, argument, work);
  // Work after the call keeps it from becoming a jump, so that this function stays on the stack.
  __asm__ volatile("");
}

bool stalls_make_pipe(int32_t *ends) { return pipe2(ends, O_CLOEXEC) == 0; }

bool stalls_is_in_memory(int32_t descriptor) {
  struct statfs system;
  return fstatfs(descriptor, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

// glibc keeps the resolver's state per thread (`_res`, resolver(3)), and getaddrinfo(3) uses it.

bool stalls_use_name_server(uint16_t port, int32_t seconds) {
  if (res_init() != 0) return false;
  struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(port)};
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  _res.nscount = 1;
  _res.nsaddr_list[0] = server;
  // The timeout in seconds, and the number of attempts.
  _res.retrans = seconds;
  _res.retry = 1;
  return true;
}

void stalls_use_own_name_servers(void) { res_init(); }
