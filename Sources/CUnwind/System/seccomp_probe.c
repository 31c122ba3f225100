// Finds out for which system calls a seccomp filter kills. Service managers kill the caller by default
// (SECCOMP_RET_KILL_PROCESS and the like; systemd.exec(5), SystemCallFilter=), like a signal with a core dump. So under
// a filter a child process makes the calls first. If one ends it, the next child goes on with the call after it.
//
// A program that adds a filter later, as one that decodes foreign data, often forbids new processes by it. So under
// such a filter nothing is tried, and each of the calls counts as deadly.
//
// The child shares our memory, so that nothing is copied: a copy would cost the app a page fault for each page that it
// writes later. It is a thread group of its own, and a filter kills no more than that. But up to Linux 5.15 a core dump
// also ends every process that shares the memory (zap_threads; 0258b5fd7c71 limits it to the thread group). There the
// child gets a copy of the memory.

#define _GNU_SOURCE
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "CUnwind.h"
#include "System/raw_system_call.h"

/// A child's time to be scheduled, make its calls and end (1 s): only SECCOMP_RET_USER_NOTIF can take as long.
#define CHILD_NANOSECONDS 1000000000ull
#define CHILD_STACK_BYTES 16384
/// Enough for /proc/<tid>/status of a process in 300 groups.
#define STATUS_BYTES 4096

/// How long the number of filters is taken as known, where each of many calls asks for it (1 ms): 1 % of the time goes
/// into asking, and a filter that the program adds is as far from each call as from those of one capture.
#define FILTERS_HOLD_NANOSECONDS 1000000ull

#define ALL_CALLS ((1u << CUNWIND_RARE_CALLS) - 1)

/// With these arguments, and 0 as the others, each call fails or changes nothing but the child.
static const struct {
  long number, first;
} rare_calls[CUNWIND_RARE_CALLS] = {
    [CUNWIND_CALL_READ_MEMORY] = {SYS_process_vm_readv, 0},   [CUNWIND_CALL_PTRACE] = {SYS_ptrace, PTRACE_SEIZE},
    [CUNWIND_CALL_NAME_TRACER] = {SYS_prctl, PR_SET_PTRACER}, [CUNWIND_CALL_QUEUE_SIGNAL] = {SYS_rt_tgsigqueueinfo, 0},
    [CUNWIND_CALL_SET_SCHEDULING] = {SYS_sched_setattr, 0},   [CUNWIND_CALL_ROBUST_LIST] = {SYS_get_robust_list, 0},
};

/// Shared with the child.
typedef struct trials {
  uint32_t next;  ///< Atomic: the call that the child makes now. CUNWIND_RARE_CALLS: it has made all.
  bool shares_memory;
  _Alignas(16) uint8_t stack[CHILD_STACK_BYTES];
} trials;

// Keeps the child from leaving a core dump, which would be the app's memory. A limit of 1 byte also holds for a core
// pattern with a pipe, which a limit of 0 does not (fs/coredump.c). PR_SET_DUMPABLE belongs to the memory.
CUNWIND_BARE static void forbid_core_dump(bool shares_memory) {
  if (!shares_memory) cunwind_raw(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0);
  struct rlimit limit;
  limit.rlim_max = 0;
  cunwind_raw(SYS_prlimit64, 0, RLIMIT_CORE, 0, (long)&limit, 0, 0);
  limit.rlim_cur = limit.rlim_max > 0 ? 1 : 0;
  cunwind_raw(SYS_prlimit64, 0, RLIMIT_CORE, (long)&limit, 0, 0, 0);
}

CUNWIND_BARE static int make_calls(void *context) {
  trials *shared = context;
  forbid_core_dump(shared->shares_memory);
  for (uint32_t next = shared->next; next < CUNWIND_RARE_CALLS;) {
    cunwind_raw(rare_calls[next].number, rare_calls[next].first, 0, 0, 0, 0, 0);
    __atomic_store_n(&shared->next, ++next, __ATOMIC_RELEASE);
  }
  return 0;
}

// Runs children until all calls are tried. `*is_gone`: no child uses `shared` any more.
static bool run_children(trials *shared, uint32_t *deadly, bool *is_gone) {
  // Exit signal 0: the app gets no SIGCHLD. With signals blocked, the one of SECCOMP_RET_TRAP is fatal, too.
  unsigned long flags = CLONE_UNTRACED | (shared->shares_memory ? CLONE_VM | CLONE_FILES : 0);
  for (;;) {
    long pid = cunwind_clone_blocked(flags, shared->stack + CHILD_STACK_BYTES, NULL, make_calls, shared);
    if (pid < 0) return false;
    bool is_late = !cunwind_reap((pid_t)pid, CHILD_NANOSECONDS);
    if (is_late) {
      cunwind_raw(SYS_kill, pid, SIGKILL, 0, 0, 0, 0);
      *is_gone = cunwind_reap((pid_t)pid, CHILD_NANOSECONDS);
    }
    // Not the wait status: the app may have reaped the child.
    uint32_t next = __atomic_load_n(&shared->next, __ATOMIC_ACQUIRE);
    if (next >= CUNWIND_RARE_CALLS) return true;
    *deadly |= 1u << next;
    // Later calls would take as long.
    if (is_late) *deadly |= ALL_CALLS & ~0u << next;
    if (is_late) return true;
    shared->next = next + 1;
  }
}

bool cunwind_try_rare_calls(bool shares_memory, uint32_t *deadly) {
  *deadly = 0;
  // Shared, so that a child with a copy of the memory can tell how far it came.
  trials *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  bool is_gone = true, is_done = false;
  if (shared != MAP_FAILED) {
    shared->shares_memory = shares_memory;
    is_done = run_children(shared, deadly, &is_gone);
    if (is_gone) munmap(shared, sizeof *shared);
  }
  if (!is_done) *deadly = ALL_CALLS;
  return is_done;
}

static bool core_dump_ends_sharers(void) {
  struct utsname system;
  if (uname(&system) != 0) return true;
  char *rest = NULL;
  long major = strtol(system.release, &rest, 10), minor = *rest == '.' ? strtol(rest + 1, NULL, 10) : 0;
  return major < 5 || (major == 5 && minor < 16);
}

uint32_t cunwind_seccomp_filters(void) {
  if (cunwind_raw(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0, 0) != SECCOMP_MODE_FILTER) return 0;
  static const char label[] = "\nSeccomp_filters:";
  char text[STATUS_BYTES];
  if (cunwind_read_text("/proc/thread-self/status", text, sizeof text) < 0) return 1;
  const char *line = strstr(text, label);
  return 1 + (line ? (uint32_t)strtoul(line + sizeof label - 1, NULL, 10) : 0);
}

uint32_t cunwind_recent_seccomp_filters(void) {
  // A thread's own, as filters are.
  static _Thread_local uint32_t filters;
  static _Thread_local uint64_t known_until;
  uint64_t now = cunwind_now();
  if (now >= known_until) {
    filters = cunwind_seccomp_filters();
    known_until = now + FILTERS_HOLD_NANOSECONDS;
  }
  return filters;
}

static bool is_deadly_under(uint32_t count, cunwind_rare_call call) {
  /// The filters in the upper half, the deadly calls in the lower half. Two threads may find out at the same time.
  static uint64_t known = 0;
  /// The process id, because a child of fork(2) begins anew, and the filters at its first question.
  static uint64_t start = 0;
  uint64_t process = (uint64_t)cunwind_raw(SYS_getpid, 0, 0, 0, 0, 0, 0);
  uint64_t first = __atomic_load_n(&start, __ATOMIC_ACQUIRE);
  if (first >> 32 != process) {
    first = process << 32 | count;
    __atomic_store_n(&start, first, __ATOMIC_RELEASE);
  }
  if (count == 0) return false;
  if (count > (uint32_t)first) return true;
  uint64_t answer = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
  if (answer >> 32 != count) {
    uint32_t deadly = 0;
    bool is_done = cunwind_try_rare_calls(!core_dump_ends_sharers(), &deadly);
    answer = (uint64_t)count << 32 | deadly;
    if (is_done) __atomic_store_n(&known, answer, __ATOMIC_RELEASE);
  }
  return (answer >> call) & 1;
}

bool cunwind_call_is_deadly(cunwind_rare_call call) { return is_deadly_under(cunwind_seccomp_filters(), call); }

bool cunwind_call_was_deadly(cunwind_rare_call call) { return is_deadly_under(cunwind_recent_seccomp_filters(), call); }

bool cunwind_may_send_signals(void) { return !cunwind_call_is_deadly(CUNWIND_CALL_QUEUE_SIGNAL); }
