#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

pid_t clinux_gettid(void) { return gettid(); }

void clinux_name_this_thread(const char *name) {
  // PR_SET_NAME cuts a long name short, where pthread_setname_np(3) refuses it.
  prctl(PR_SET_NAME, name);
}

int clinux_block_all_signals(void) {
  sigset_t all;
  sigfillset(&all);
  return pthread_sigmask(SIG_BLOCK, &all, NULL);
}

int clinux_unblock_all_signals(void) {
  sigset_t all;
  sigfillset(&all);
  return pthread_sigmask(SIG_UNBLOCK, &all, NULL);
}

bool clinux_prepare_barrier_in_all_threads(void) {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool clinux_barrier_in_all_threads(void) {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

int clinux_semaphore_wait_until(sem_t *semaphore, uint64_t deadline) {
  if (deadline == UINT64_MAX) {
    return sem_wait(semaphore) == 0 ? 0 : errno;
  }
  // sem_timedwait(3) counts in wall-clock time, which can be set: sem_clockwait (glibc 2.30) does not.
  struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000u), .tv_nsec = (long)(deadline % 1000000000u)};
  return sem_clockwait(semaphore, CLOCK_MONOTONIC, &until) == 0 ? 0 : errno;
}

bool clinux_read_memory(uint64_t address, void *to, size_t length) {
  struct iovec local = {.iov_base = to, .iov_len = length};
  struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = length};
  // One's own process needs no permission (ptrace(2), "Ptrace access mode checking"). The pid is asked for each time: a
  // process made by fork(2) has another one.
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)length;
}

// Exported by libswiftCore. The first gives the short form of Swift names and knows C++ names too; it serves the
// runtime's own backtracer and is not part of the stable ABI, so it may be missing: weak, with the second one behind it.
extern char *_swift_backtrace_demangle(const char *mangled, size_t length, char *buffer, size_t *buffer_size)
    __attribute__((weak));
extern char *swift_demangle(const char *mangled, size_t length, char *buffer, size_t *buffer_size, uint32_t flags)
    __attribute__((weak));

char *clinux_demangle(const char *symbol, size_t length) {
  if (_swift_backtrace_demangle != NULL) {
    return _swift_backtrace_demangle(symbol, length, NULL, NULL);
  }
  return swift_demangle != NULL ? swift_demangle(symbol, length, NULL, NULL, 0) : NULL;
}

char *clinux_demangle_long(const char *symbol, size_t length) {
  return swift_demangle != NULL ? swift_demangle(symbol, length, NULL, NULL, 0) : NULL;
}
