// The helper process: seize, interrupt, wait, copy, release.
//
// What can go wrong, and the result (ptrace(2), kernel/ptrace.c, kernel/signal.c):
// - Another stop comes first. The delivery stop of a signal serves as well as ours; the detach delivers the signal with
//   its siginfo. A group stop (SIGSTOP, job control) stays one: the detach arms it again.
// - The thread does not stop in time, because it gets no CPU. PTRACE_INTERRUPT can be withdrawn, but its effect cannot:
//   TIF_SIGPENDING stays set, and a thread that then waits in epoll_wait(2) or recv(2) gets EINTR. So the caller stops
//   waiting for the helper, but the helper keeps waiting, to restart that call.
// - The thread runs in the kernel for long: it stops when its call returns. The parent may leave the stop pending; the
//   helper then copies as usual. The user stack has not changed meanwhile.
// - The thread does not stop for seconds (uninterruptible sleep). PTRACE_DETACH needs a stopped tracee, so the helper
//   just ends. It seized without PTRACE_O_EXITKILL: the kernel detaches its tracees, withdraws the pending
//   PTRACE_INTERRUPT (__ptrace_unlink clears JOBCTL_TRAP_MASK), and wakes a tracee that has just stopped. It delivers a
//   signal whose delivery stop was under way. The same happens if the helper is killed at any instruction.
// - The thread has a real-time policy, and another such thread takes the helper's CPU while it is stopped. So the helper
//   takes a priority above the thread's first; where it may not, it does not stop the thread.
// - The helper has a far higher nice value than the thread, or SCHED_IDLE, and other threads take its CPU: it is not made.
// - The helper's control group has a small quota, or is frozen: it is not made for a thread of another group. If both have
//   the same, the thread is kept from running, too.
// - The thread ends, or another one calls execve(2): the wait reports that.

#define _GNU_SOURCE
#include "Methods/stop_helper.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "System/raw_system_call.h"

/// A thread on CPU stops within a few microseconds. For that time the helper polls: if it slept or yielded, the thread
/// would stay stopped until the scheduler runs the helper again, 4 ms on a busy machine (measured). After that it
/// sleeps, because the thread may wait for the helper's own CPU.
#define POLL_NANOSECONDS 50000ull

CUNWIND_BARE static long call_ptrace(long request, long tid, long address, long data) {
  return cunwind_raw(SYS_ptrace, request, tid, address, data, 0, 0);
}

CUNWIND_BARE static int finish_with(cunwind_stop_request *request, cunwind_status status, long error) {
  request->status = status;
  request->error = (int)error;
  return 0;
}

// SIGCHLD announces a stop of our tracee. It is blocked, so it stays pending until it is taken. This wait ends as soon
// as the thread stops, and has a bound; wait4(2) has none.
CUNWIND_BARE static void sleep_until_child(uint64_t nanoseconds) {
  uint64_t set = 1ull << (SIGCHLD - 1);
  struct timespec bound = cunwind_timespec(nanoseconds);
  cunwind_raw(SYS_rt_sigtimedwait, (long)&set, 0, (long)&bound, CUNWIND_SIGSET_BYTES, 0, 0);
}

// Waits for a stop. Positive: stopped; `*state` is the kind of stop, and `*unseen` the last time at which the thread
// was not yet stopped. 0: the time is over. Negative: the errno.
CUNWIND_BARE static long wait_for_stop(const cunwind_stop_request *request, int *state, uint64_t *unseen) {
  uint64_t begin = cunwind_now();
  for (;;) {
    *unseen = cunwind_now();
    long got = cunwind_raw(SYS_wait4, request->order.tid, (long)state, __WALL | WNOHANG, 0, 0, 0);
    if (got != 0) return got;
    uint64_t now = cunwind_now(), bound = __atomic_load_n(&request->waits_until, __ATOMIC_ACQUIRE);
    if (now >= bound) return 0;
    // The parent may move the bound meanwhile, so no sleep is longer than the shortest bound.
    uint64_t left = bound - now;
    if (left > CUNWIND_RELEASE_TIMEOUT_NANOSECONDS) left = CUNWIND_RELEASE_TIMEOUT_NANOSECONDS;
    if (now - begin >= POLL_NANOSECONDS) sleep_until_child(left);
  }
}

// False: the parent no longer waits, and has taken its buffers back.
CUNWIND_BARE static bool claim(cunwind_stop_request *request) {
  uint32_t phase = CUNWIND_HELPER_WAITS;
  for (;;) {
    if (phase != CUNWIND_HELPER_WAITS && phase != CUNWIND_HELPER_STAYS) return false;
    if (__atomic_compare_exchange_n(&request->phase, &phase, CUNWIND_HELPER_HAS_IT, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
      return true;
  }
}

// Reads the path of the file behind the first argument of the call that the thread has just left. Runs right after the
// release, because the thread may soon close the descriptor. It only reads a link, whatever the argument is.
CUNWIND_BARE static void read_target(cunwind_stop_request *request) {
#if defined(__x86_64__)
  if ((long)request->registers.orig_rax < 0) return;
  uint64_t descriptor = request->registers.rdi;
#else
  // x0 holds the call's result.
  uint64_t descriptor = UINT64_MAX;
#endif
  if (descriptor > INT32_MAX) return;
  // "/proc/self" is the helper's directory; CLONE_FILES shares the descriptors.
  char path[CUNWIND_NUMBERED_PATH_BYTES];
  cunwind_number_path(path, "/proc/self/fd/", descriptor, "");
  long got = cunwind_raw(SYS_readlinkat, AT_FDCWD, (long)path, (long)request->target, sizeof request->target, 0, 0);
  request->target[got > 0 && (unsigned long)got < sizeof request->target ? got : 0] = 0;
}

CUNWIND_BARE static int copy_and_release(cunwind_stop_request *request, int state, uint64_t unseen) {
  bool is_wanted = claim(request);
  struct iovec registers;
  registers.iov_base = &request->registers;
  registers.iov_len = sizeof request->registers;
  long failed = call_ptrace(PTRACE_GETREGSET, request->order.tid, NT_PRSTATUS, (long)&registers);
  // An event stop has its event in the third byte. Without an event, a signal is about to be delivered to the thread.
  bool is_on_its_way = (state >> 16) == 0;
  int signal_to_deliver = is_on_its_way ? WSTOPSIG(state) : 0;
  // Before anything else, so that it is done even if the helper is killed while it copies.
  if (failed == 0 && !is_on_its_way) cunwind_restart_interrupted_call(request->order.tid, &request->registers);
  if (failed == 0 && is_wanted) {
    uint64_t stack_pointer = request->registers.CUNWIND_PTRACE_SP;
    if (request->order.walk) cunwind_read_async_chains(request->order.walk, stack_pointer);
    else cunwind_copy_stack(request->copy, stack_pointer, &request->order.bounds);
    if (request->order.context_layout)
      cunwind_read_context(&request->context, request->order.context_layout, request->order.thread_pointer);
  }
  // Not after it: the thread that it releases may take this processor, and the helper waits for a turn.
  uint64_t released = cunwind_now();
  if (is_wanted) request->copied_at = released;
  call_ptrace(PTRACE_DETACH, request->order.tid, 0, signal_to_deliver);
  if (!is_wanted) return 0;
  request->held_nanoseconds = released - unseen;
  if (failed == 0) read_target(request);
  if (failed == -ESRCH) return finish_with(request, CUNWIND_NO_SUCH_THREAD, 0);  // Killed while it was stopped.
  return failed == 0 ? finish_with(request, CUNWIND_OK, 0) : finish_with(request, CUNWIND_FAILED, -failed);
}

// False: the parent did not name the helper in time. A stopped or dead parent would never wake the helper.
CUNWIND_BARE static bool wait_until_named(const cunwind_stop_request *request) {
  uint64_t begin = cunwind_now();
  while (__atomic_load_n(&request->may_begin, __ATOMIC_ACQUIRE) == 0) {
    uint64_t waited = cunwind_now() - begin;
    if (waited >= CUNWIND_STOP_TIMEOUT_NANOSECONDS) return false;
    cunwind_futex_wait(&request->may_begin, FUTEX_WAIT, 0, CUNWIND_STOP_TIMEOUT_NANOSECONDS - waited);
  }
  return true;
}

CUNWIND_BARE int cunwind_stop_helper(void *context) {
  cunwind_stop_request *request = context;
  if (!wait_until_named(request)) return finish_with(request, CUNWIND_TIMED_OUT, 0);
  // With the app's SA_NOCLDSTOP or SIG_IGN no SIGCHLD would come. The kernel's struct sigaction, all zero: SIG_DFL.
  uint64_t by_default[4];
  for (int index = 0; index < 4; index++) by_default[index] = 0;
  cunwind_raw(SYS_rt_sigaction, SIGCHLD, (long)by_default, 0, CUNWIND_SIGSET_BYTES, 0, 0);

  // Not as a refusal of the system: other threads may be stopped.
  if (request->order.priority > 0 && !cunwind_take_priority(request->order.priority))
    return finish_with(request, CUNWIND_REFUSED, EBUSY);

  __atomic_store_n(&request->phase, CUNWIND_HELPER_WAITS, __ATOMIC_RELEASE);
  long failed = call_ptrace(PTRACE_SEIZE, request->order.tid, 0, 0);
  if (failed == -ESRCH) return finish_with(request, CUNWIND_NO_SUCH_THREAD, 0);
  if (failed < 0) return finish_with(request, CUNWIND_REFUSED, -failed);
  failed = call_ptrace(PTRACE_INTERRUPT, request->order.tid, 0, 0);
  if (failed < 0) return finish_with(request, CUNWIND_NO_SUCH_THREAD, 0);

  int state = 0;
  uint64_t unseen = 0;
  long got = wait_for_stop(request, &state, &unseen);
  if (got == 0) return finish_with(request, CUNWIND_TIMED_OUT, 0);
  if (got == -ECHILD || (got > 0 && !WIFSTOPPED(state))) return finish_with(request, CUNWIND_NO_SUCH_THREAD, 0);
  if (got < 0) return finish_with(request, CUNWIND_FAILED, -got);
  return copy_and_release(request, state, unseen);
}
