#define _GNU_SOURCE
#include <link.h>
#include <sched.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "CDemo.h"

void demo_wait_in_epoll(int32_t milliseconds) {
  int descriptor = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event;
  epoll_wait(descriptor, &event, 1, milliseconds);
  close(descriptor);
}

static _Thread_local cpu_set_t all_processors;

void demo_pin_thread(void) {
  if (sched_getaffinity(0, sizeof all_processors, &all_processors) != 0) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int processor = 0; processor < CPU_SETSIZE && CPU_COUNT(&one) == 0; processor++) {
    if (CPU_ISSET(processor, &all_processors)) CPU_SET(processor, &one);
  }
  sched_setaffinity(0, sizeof one, &one);
}

void demo_unpin_thread(void) { sched_setaffinity(0, sizeof all_processors, &all_processors); }

int32_t demo_open_event(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void demo_signal_event(int32_t descriptor) {
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

void demo_with_loader_lock(void (*work)(void *), void *argument) {
  struct loader_call call = {work, argument};
  dl_iterate_phdr(call_out, &call);
}
