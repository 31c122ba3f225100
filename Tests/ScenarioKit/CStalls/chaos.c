// Actions that a program may perform beside its loops. Each call performs one action once and returns whether it succeeded.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "CStalls.h"

extern char **environ;

// Returns the exit status of the child, or -1 if it was lost or a signal ended it.
static int status_of(pid_t child) {
  int status;
  if (child < 0) return -1;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool stalls_fork_and_wait(void) {
  pid_t child = fork();
  if (child == 0) _exit(7);
  return status_of(child) == 7;
}

bool stalls_exec_and_wait(void) {
  pid_t child;
  char *arguments[] = {"sh", "-c", "exit 7", NULL};
  if (posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) != 0) return false;
  return status_of(child) == 7;
}

bool stalls_load_and_unload(void) {
  // Small libraries of glibc that this program does not link.
  static const char *const names[] = {"libthread_db.so.1", "libBrokenLocale.so.1", "libanl.so.1"};
  int loaded = 0;
  for (int index = 0; index < 3; index++) {
    void *library = dlopen(names[index], RTLD_NOW | RTLD_LOCAL);
    if (library && dlclose(library) == 0) loaded++;
  }
  return loaded > 0;
}

bool stalls_allocate_and_free(void) {
  enum { count = 64 };
  unsigned char *blocks[count];
  bool is_whole = true;
  // From 16 bytes to 1 MiB. malloc(3) maps a block of that size separately.
  for (int index = 0; index < count; index++) {
    size_t size = (size_t)16 << (index % 17);
    blocks[index] = malloc(size);
    if (blocks[index]) memset(blocks[index], index, size);
  }
  for (int index = 0; index < count; index++) {
    size_t size = (size_t)16 << (index % 17);
    is_whole &= blocks[index] && blocks[index][0] == index && blocks[index][size - 1] == index;
    free(blocks[index]);
  }
  return is_whole;
}

size_t stalls_allocated_bytes(void) {
#if __GLIBC_PREREQ(2, 33)
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  struct mallinfo info = mallinfo();  // Wraps at 4 GiB, which a soak never has.
  return (unsigned int)info.uordblks + (size_t)(unsigned int)info.hblkhd;
#endif
}

bool stalls_dirty_and_drop(size_t length) {
  unsigned char *pages = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return false;
  bool is_whole = true;
  for (int round = 0; round < 2; round++) {
    for (size_t offset = 0; offset < length; offset += 4096) {
      is_whole &= pages[offset] == 0;
      pages[offset] = 1;
    }
    madvise(pages, length, MADV_DONTNEED);
  }
  munmap(pages, length);
  return is_whole;
}

bool stalls_page_out(uint64_t address, uint64_t length) {
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
  return madvise((void *)(uintptr_t)address, length, MADV_PAGEOUT) == 0;
}

// Adds whole seconds to the wall clock, exactly. Two opposite steps leave it right, unlike two calls that set it.
static bool shift_clock(long seconds) {
  struct timex step;
  memset(&step, 0, sizeof step);
  step.modes = ADJ_SETOFFSET | ADJ_NANO;
  step.time.tv_sec = seconds;
  return clock_adjtime(CLOCK_REALTIME, &step) >= 0;
}

// Runs in a child of fork(2), so it makes only system calls.
static int step_clock(uint32_t milliseconds) {
  if (!shift_clock(-STALLS_CLOCK_STEP_SECONDS)) return STALLS_CLOCK_REFUSED;
  struct timespec stay = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &stay, NULL);
  // The step was permitted a moment ago. It is tried again, because a missing step leaves the clock wrong.
  for (int attempt = 0; attempt < 3; attempt++) {
    if (shift_clock(STALLS_CLOCK_STEP_SECONDS)) return STALLS_CLOCK_STEPPED;
  }
  return STALLS_CLOCK_LEFT_WRONG;
}

stalls_clock_result stalls_step_clock(uint32_t milliseconds) {
  // The child inherits the mask, so that a signal that ends this process leaves the child to correct the clock.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t child = fork();
  if (child == 0) {
    // Leaves the process group of the terminal and the parent.
    setsid();
    _exit(step_clock(milliseconds));
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  int status = status_of(child);
  if (child < 0) return STALLS_CLOCK_REFUSED;
  return status == STALLS_CLOCK_STEPPED || status == STALLS_CLOCK_REFUSED ? (stalls_clock_result)status
                                                                          : STALLS_CLOCK_LEFT_WRONG;
}
