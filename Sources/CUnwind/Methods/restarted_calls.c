// Calls that return EINTR when their thread is stopped and continued (signal(7), "Interruption of system calls and
// library functions by stop signals"; io_getevents(2), io_uring_enter(2)). For the kernel, a stop signal and a stop by
// ptrace are the same: the thread leaves the call in both cases.
//
// A thread that is blocked in such a call is only read. A running one may enter such a call in the few microseconds
// before the stop reaches it, whose wait is then lost: the helper restarts it, as the kernel does every other call
// (arch_do_signal_or_restart, for ERESTARTNOHAND), by setting the program counter back to the system call instruction.

#define _GNU_SOURCE
#include <elf.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "CUnwind.h"
#include "Methods/stop_helper.h"
#include "System/raw_system_call.h"

typedef struct call {
  long number;
  bool on_sockets_only;  // With SO_RCVTIMEO or SO_SNDTIMEO. Not checked: that would be a call on the app's socket.
  uint8_t mask;          // Which argument has the signals that are blocked meanwhile, from 1 on; 0: none.
} call;

static const call interrupted_calls[] = {
    {SYS_epoll_pwait, false, 5},
    {SYS_epoll_pwait2, false, 5},
    {SYS_semop, false, 0},
    {SYS_semtimedop, false, 0},
    {SYS_rt_sigtimedwait, false, 0},
    {SYS_io_getevents, false, 0},
    {SYS_io_pgetevents, false, 6},
    {SYS_io_uring_enter, false, 5},
    {SYS_connect, true, 0},
    {SYS_accept, true, 0},
    {SYS_accept4, true, 0},
    {SYS_sendto, true, 0},
    {SYS_recvfrom, true, 0},
    {SYS_sendmsg, true, 0},
    {SYS_recvmsg, true, 0},
    {SYS_sendmmsg, true, 0},
    {SYS_recvmmsg, true, 0},
    {SYS_read, true, 0},
    {SYS_readv, true, 0},
    // Also on a full pipe or terminal: a call that has written a part of its bytes returns their number after a stop
    // (fs/pipe.c, drivers/tty/n_tty.c).
    {SYS_write, false, 0},
    {SYS_writev, false, 0},
    // On tmpfs of older kernels (shmem_fallocate, until 2024), and for huge pages (hugetlbfs_fallocate).
    {SYS_fallocate, false, 0},
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, false, 0},  // Not on aarch64.
#endif
};

CUNWIND_BARE static const call *find(long number) {
  for (unsigned index = 0; index < sizeof interrupted_calls / sizeof *interrupted_calls; index++) {
    if (interrupted_calls[index].number == number) return &interrupted_calls[index];
  }
  return 0;
}

CUNWIND_BARE bool cunwind_may_be_interrupted(long number) { return find(number) != 0; }

bool cunwind_call_is_interrupted_by_stop(int64_t number, bool is_on_socket) {
  const call *found = find((long)number);
  return found && (is_on_socket || !found->on_sockets_only);
}

// Kernel functions in which only calls wait that resume after a stop: futex(2), nanosleep(2), poll(2) and select(2),
// reads of pipes, child processes, files and their locks, the kernel's own mutexes (Linux 5.4 to 6.14). The functions
// of epoll_wait(2), of sockets, of writes to pipes, and of unknown calls are left out.
static const char *const restarting_waits[] = {
    "futex_wait_queue_me",
    "futex_wait_queue",
    "__futex_wait",
    "futex_do_wait",
    "hrtimer_nanosleep",
    "do_nanosleep",
    "common_nsleep",
    "poll_schedule_timeout",
    "do_sys_poll",
    "do_select",
    "pipe_read",
    "anon_pipe_read",
    "do_wait",
    "kernel_wait4",
    "wait_for_partner",
    "locks_lock_inode_wait",
    "fcntl_setlk",
    "flock_lock_inode_wait",
    "folio_wait_bit_common",
    "n_tty_read",
};

bool cunwind_wait_restarts_after_stop(const char *name) {
  for (unsigned index = 0; index < sizeof restarting_waits / sizeof *restarting_waits; index++) {
    size_t length = strlen(restarting_waits[index]);
    // The compiler's own copies of a function have a suffix: poll_schedule_timeout.constprop.0.
    if (strncmp(name, restarting_waits[index], length) == 0 && (name[length] == 0 || name[length] == '.')) return true;
  }
  return false;
}

CUNWIND_BARE void cunwind_set_stopped_registers(pid_t tid, cunwind_ptrace_registers *registers) {
  struct iovec argument;
  argument.iov_base = registers;
  argument.iov_len = sizeof *registers;
  // If this fails, the call returns EINTR, as with any other monitor.
  cunwind_raw(SYS_ptrace, PTRACE_SETREGSET, tid, NT_PRSTATUS, (long)&argument, 0, 0);
}

/// The most pending signals that are checked. If there are more, one of them is certainly not blocked.
#define MAX_PENDING_SIGNALS 32

CUNWIND_BARE bool cunwind_has_pending_signal(pid_t tid, long interrupted_call, uint64_t fifth, uint64_t sixth) {
  uint64_t blocked = 0;
  if (cunwind_raw(SYS_ptrace, PTRACE_GETSIGMASK, tid, sizeof blocked, (long)&blocked, 0, 0) != 0) return true;
  // Until such a call has returned, the kernel shows the mask that it restores then, and not the one in force (Linux 5.2,
  // ptrace_request). The signal that ended the call may be blocked in that one.
  const call *interrupted = find(interrupted_call);
  if (interrupted && interrupted->mask != 0 && (interrupted->mask == 5 ? fifth : sixth) != 0) blocked = 0;
  for (unsigned shared = 0; shared < 2; shared++) {
    for (unsigned offset = 0;; offset++) {
      if (offset == MAX_PENDING_SIGNALS) return true;
      siginfo_t info;
      struct __ptrace_peeksiginfo_args which;
      which.off = offset;
      which.flags = shared ? PTRACE_PEEKSIGINFO_SHARED : 0;
      which.nr = 1;
      long got = cunwind_raw(SYS_ptrace, PTRACE_PEEKSIGINFO, tid, (long)&which, (long)&info, 0, 0);
      if (got < 0) return true;
      if (got == 0) break;
      if ((blocked & 1ull << (info.si_signo - 1)) == 0) return true;
    }
  }
  return false;
}
