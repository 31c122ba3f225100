// A thread that waits for events without an end, as the thread of an event loop.

#define _GNU_SOURCE
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"

int cunwind_test_epoll(int *event) {
  int set = epoll_create1(EPOLL_CLOEXEC);
  *event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  struct epoll_event interest = {.events = EPOLLIN | EPOLLET};
  return epoll_ctl(set, EPOLL_CTL_ADD, *event, &interest) == 0 ? set : -1;
}

void cunwind_test_take_event(int set, int event) {
  struct epoll_event found;
  uint64_t count;
  if (epoll_wait(set, &found, 1, -1) == 1) (void)!read(event, &count, sizeof count);
}
