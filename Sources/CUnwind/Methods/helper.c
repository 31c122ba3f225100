// Creates helper processes, waits for them with a bound, and reaps them.

#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "Memory/guarded_memory.h"
#include "Methods/stop_helper.h"
#include "System/raw_system_call.h"

#define HELPER_STACK_BYTES 32768u

// Exit signal 0: the app gets no SIGCHLD, and its wait(2) or waitpid(-1) does not return the helper, because they wait
// for children with SIGCHLD only (wait(2): such a "clone" child needs __WALL or __WCLONE). CLONE_UNTRACED: a debugger
// that follows forks does not trace it. No CLONE_THREAD: ptrace(2) refuses the caller's own thread group. No
// CLONE_SIGHAND, no CLONE_SETTLS; rseq and the robust-futex list are not inherited (copy_process, rseq_fork).
#define HELPER_FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

bool cunwind_helper_init(cunwind_helper_memory *helper) {
  memset(helper, 0, sizeof *helper);
  uint8_t *memory = mmap(NULL, CUNWIND_PAGE_BYTES + HELPER_STACK_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return false;
  helper->stack = memory;
  void *request =
      mmap(NULL, sizeof *helper->request, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (request == MAP_FAILED) return false;
  helper->request = request;
  return mprotect(memory, CUNWIND_PAGE_BYTES, PROT_NONE) == 0;
}

void cunwind_helper_destroy(cunwind_helper_memory *helper) {
  if (helper->stack) munmap(helper->stack, CUNWIND_PAGE_BYTES + HELPER_STACK_BYTES);
  if (helper->request) munmap(helper->request, sizeof *helper->request);
}

// True: the kernel has cleared `alive`, so the helper no longer runs our code.
bool cunwind_wait_until_gone(uint32_t *alive, uint64_t bound) {
  uint64_t deadline = cunwind_now() + bound;
  uint32_t tid;
  while ((tid = __atomic_load_n(alive, __ATOMIC_ACQUIRE)) != 0) {
    uint64_t now = cunwind_now();
    if (now >= deadline) return false;
    // Not FUTEX_PRIVATE_FLAG: the kernel wakes CLONE_CHILD_CLEARTID's futex as a shared one.
    cunwind_futex_wait(alive, FUTEX_WAIT, tid, deadline - now);
  }
  return true;
}

bool cunwind_helper_has_ended(cunwind_helper_memory *helper, uint64_t bound) {
  int ending;
  // While the helper is alive, no other process has its id.
  if (helper->unreaped && cunwind_now() >= helper->left_until &&
      __atomic_load_n(&helper->request->alive, __ATOMIC_ACQUIRE) != 0) {
    cunwind_raw(SYS_kill, helper->unreaped, SIGKILL, 0, 0, 0, 0);
  }
  if (helper->unreaped && !cunwind_reap(helper->unreaped, bound, &ending)) return false;
  helper->unreaped = 0;
  return true;
}

long cunwind_make_helper(cunwind_helper_memory *helper, int (*function)(void *)) {
  uint8_t *top = helper->stack + CUNWIND_PAGE_BYTES + HELPER_STACK_BYTES;
  return cunwind_clone_blocked(HELPER_FLAGS, top, &helper->request->alive, function, helper->request);
}
