// Tries system calls in a child process: a filter of system calls may end the caller of one that it does not list.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "CLinux.h"

/// How often the caller looks whether the child has ended (1 ms), and how long it waits (1 s).
#define POLL_NANOSECONDS 1000000l
#define MAXIMUM_POLLS 1000

static int try_read_memory(void) {
  uint64_t word = 0x5a5a5a5a5a5a5a5aull, copy = 0;
  struct iovec local = {&copy, sizeof copy}, remote = {&word, sizeof word};
  if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != (ssize_t)sizeof copy) return errno;
  return copy == word ? 0 : EIO;
}

// The target is a process where a capture's is a thread; the kernel asks the same of both.
static int try_ptrace(void) {
  pid_t tracer = getpid(), target = fork();
  if (target < 0) return errno;
  if (target == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == tracer) pause();
    _exit(0);
  }
  int error = 0, status;
  if (ptrace(PTRACE_SEIZE, target, NULL, NULL) != 0 || ptrace(PTRACE_INTERRUPT, target, NULL, NULL) != 0 ||
      waitpid(target, &status, __WALL) != target)
    error = errno;
  kill(target, SIGKILL);
  waitpid(target, &status, __WALL);
  return error;
}

static int try_event(const struct perf_event_attr *attributes) {
  long event = syscall(SYS_perf_event_open, attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (event < 0) return errno;
  close((int)event);
  return 0;
}

// The least that a capture by perf event needs: samples in the kernel, too.
static int try_sampling(void) {
  struct perf_event_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = 1000000;
  attributes.disabled = 1;
  attributes.exclude_hv = 1;
  return try_event(&attributes);
}

static int try_page_faults(void) {
  struct clinux_fault_watch watch = {.descriptor = -1};
  errno = 0;
  if (!clinux_watch_faults(0, &watch)) return errno ? errno : EIO;
  clinux_unwatch_faults(&watch);
  return 0;
}

// Signal 0 is not delivered, and checked like any other.
static int try_signal(void) {
  siginfo_t info;
  memset(&info, 0, sizeof info);
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  return syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), 0, &info) == 0 ? 0 : errno;
}

static int carry_out(enum clinux_trial trial) {
  switch (trial) {
    case CLINUX_TRY_READ_MEMORY:
      return try_read_memory();
    case CLINUX_TRY_PTRACE:
      return try_ptrace();
    case CLINUX_TRY_SAMPLING:
      return try_sampling();
    case CLINUX_TRY_PAGE_FAULTS:
      return try_page_faults();
    case CLINUX_TRY_SIGNAL:
      return try_signal();
  }
  return EINVAL;
}

int clinux_try(enum clinux_trial trial) {
  pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    // No core dump, if a filter ends it. A target of ptrace(2) has to stay dumpable, and its tracer does not.
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    // Error numbers are below 134.
    _exit(carry_out(trial));
  }
  int status = 0;
  for (int poll = 0; poll < MAXIMUM_POLLS; poll++) {
    pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    if (ended < 0 && errno != EINTR) return errno;
    struct timespec pause = {0, POLL_NANOSECONDS};
    nanosleep(&pause, NULL);
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return ETIMEDOUT;
}

bool clinux_is_dumpable(void) { return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1; }
