// A disk that hangs, for one file and one thread.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "CStalls.h"

/// The longest wait for a call, in milliseconds.
#define PATIENCE 60000

bool stalls_can_delay_fsync(void) {
  uint32_t action = SECCOMP_RET_USER_NOTIF;
  return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

struct delay {
  int listener;
  uint32_t milliseconds;
};

/// Lets the call go on after its time. If a signal interrupts it meanwhile, the kernel asks again.
static void *delay_one_call(void *data) {
  struct delay delay = *(struct delay *)data;
  free(data);
  struct timespec end = {0, 0};
  struct pollfd asks = {delay.listener, POLLIN, 0};
  struct seccomp_notif_sizes sizes;
  void *request = NULL, *response = NULL;
  if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) == 0) {
    request = calloc(1, sizes.seccomp_notif);
    response = calloc(1, sizes.seccomp_notif_resp);
  }
  while (request && response && poll(&asks, 1, PATIENCE) > 0 && asks.revents == POLLIN) {
    struct seccomp_notif *asked = request;
    *asked = (struct seccomp_notif){0};
    if (ioctl(delay.listener, SECCOMP_IOCTL_NOTIF_RECV, asked) != 0) continue;
    if (end.tv_sec == 0) {
      clock_gettime(CLOCK_MONOTONIC, &end);
      uint64_t nanoseconds = end.tv_nsec + delay.milliseconds * 1000000ull;
      end.tv_sec += nanoseconds / 1000000000;
      end.tv_nsec = nanoseconds % 1000000000;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR) continue;
    struct seccomp_notif_resp *answer = response;
    *answer = (struct seccomp_notif_resp){.id = asked->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    if (ioctl(delay.listener, SECCOMP_IOCTL_NOTIF_SEND, answer) == 0) break;
  }
  free(request);
  free(response);
  close(delay.listener);
  return NULL;
}

bool stalls_delay_fsync(int32_t descriptor, uint32_t milliseconds) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsync, 0, 3),
      // The lower half: both architectures are little-endian.
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)descriptor, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {sizeof rules / sizeof rules[0], rules};
  struct delay *delay = malloc(sizeof *delay);
  if (!delay || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    free(delay);
    return false;
  }
  long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
  *delay = (struct delay){(int)listener, milliseconds};
  pthread_t thread;
  if (listener < 0 || pthread_create(&thread, NULL, delay_one_call, delay) != 0) {
    if (listener >= 0) close((int)listener);
    free(delay);
    return false;
  }
  pthread_detach(thread);
  return true;
}
