// What the threads of the monitor need, whatever the program's threads have; for each C target that starts some. Define
// _GNU_SOURCE first.

#pragma once

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/// The kernel's own slack of timers, in nanoseconds (include/linux/init_task.h): the program may have set another one,
/// and a real-time thread has none.
#define TIMER_SLACK 50000

static int add_thread_locals(struct dl_phdr_info *info, size_t size, void *sum) {
  (void)size;
  for (int index = 0; index < info->dlpi_phnum; index++) {
    if (info->dlpi_phdr[index].p_type == PT_TLS) *(size_t *)sum += info->dlpi_phdr[index].p_memsz;
  }
  return 0;
}

/// The bytes of the program's thread-local variables, which each stack holds (nptl/allocatestack.c).
static size_t thread_local_bytes(void) {
  size_t sum = 0;
  dl_iterate_phdr(add_thread_locals, &sum);
  return sum;
}

/// Returns a size of a stack with room for them.
static size_t stack_size(size_t bytes, size_t thread_locals) {
  return (bytes + thread_locals + 0xffff) & ~(size_t)0xffff;
}

// Blocks the signals that apps use. Those of crashes and traps stay as they are, and SIGPROF: Swift's crash handler
// stops a thread with the first of SIGUSR1, SIGUSR2 and SIGPROF that it does not block (CrashHandlerLinux.cpp). A trap
// that is blocked would reset the app's handler (force_sig_info_to_task).
static void block_app_signals(sigset_t *before) {
  static const int crash_signals[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPROF, SIGSEGV, SIGSYS, SIGTRAP};
  sigset_t blocked;
  sigfillset(&blocked);
  for (size_t index = 0; index < sizeof crash_signals / sizeof *crash_signals; index++)
    sigdelset(&blocked, crash_signals[index]);
  pthread_sigmask(SIG_BLOCK, &blocked, before);
}
