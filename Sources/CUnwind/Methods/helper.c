// Creates helper processes, waits for them with a bound, and reaps them; keeps those of threads in the kernel pending.

#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "Engine/engine.h"
#include "System/own_process.h"
#include "System/raw_system_call.h"

#define HELPER_STACK_BYTES 32768u

// Exit signal 0: the app gets no SIGCHLD, and its wait(2) or waitpid(-1) does not return the helper, because they wait
// for children with SIGCHLD only (wait(2): such a "clone" child needs __WALL or __WCLONE). CLONE_UNTRACED: a debugger
// that follows forks does not trace it. No CLONE_THREAD: ptrace(2) refuses the caller's own thread group. No
// CLONE_SIGHAND, no CLONE_SETTLS; rseq and the robust-futex list are not inherited (copy_process, rseq_fork).
// No CLONE_FS: another user of it takes the privilege from a setuid program that the app executes (check_unsafe_exec).
#define HELPER_FLAGS (CLONE_VM | CLONE_FILES | CLONE_UNTRACED | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

bool cunwind_helper_init(cunwind_helper_memory *helper) {
  memset(helper, 0, sizeof *helper);
  // One page of the kernel's, which may have 64 KiB on aarch64.
  helper->guard_bytes = (size_t)sysconf(_SC_PAGESIZE);
  // With one page in use, because most programs never stall. The first page fault in a mapping waits while another thread
  // is in munmap(2); from Linux 6.4 on, later ones do not.
  helper->stack = cunwind_map(helper->guard_bytes + HELPER_STACK_BYTES, MAP_STACK);
  helper->request = cunwind_map(sizeof *helper->request, MAP_POPULATE);
  if (!helper->stack || !helper->request || mprotect(helper->stack, helper->guard_bytes, PROT_NONE) != 0) return false;
  cunwind_touch(helper->stack + helper->guard_bytes, 0, 1);
  return true;
}

void cunwind_helper_destroy(cunwind_helper_memory *helper) {
  if (helper->stack) munmap(helper->stack, helper->guard_bytes + HELPER_STACK_BYTES);
  if (helper->request) munmap(helper->request, sizeof *helper->request);
  cunwind_copy_destroy(helper->copy);
  memset(helper, 0, sizeof *helper);
}

void cunwind_helper_touch(cunwind_helper_memory *helper) {
  // One that still runs uses its stack.
  if (helper->is_touched || helper->unreaped) return;
  cunwind_touch(helper->stack + helper->guard_bytes, 0, HELPER_STACK_BYTES);
  helper->is_touched = true;
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
  // While the helper is alive, no other process has its id.
  if (helper->unreaped && cunwind_now() >= helper->left_until &&
      __atomic_load_n(&helper->request->alive, __ATOMIC_ACQUIRE) != 0) {
    cunwind_raw(SYS_kill, helper->unreaped, SIGKILL, 0, 0, 0, 0);
  }
  if (helper->unreaped && !cunwind_reap(helper->unreaped, bound)) return false;
  helper->unreaped = 0;
  return true;
}

long cunwind_make_helper(cunwind_helper_memory *helper) {
  uint8_t *top = helper->stack + helper->guard_bytes + HELPER_STACK_BYTES;
  return cunwind_clone_blocked(HELPER_FLAGS, top, &helper->request->alive, cunwind_stop_helper, helper->request);
}

// ---- Pending stops --------------------------------------------------------------------------------------------------
// Each has the memory of its helper.

static cunwind_pending_stop *find(cunwind_engine *engine, pid_t tid) {
  for (int index = 0; index < CUNWIND_MAX_PENDING_STOPS; index++) {
    if (engine->pending[index].tid == tid) return &engine->pending[index];
  }
  return NULL;
}

// Keeps the memory as the spare: allocating it later may block, because mmap(2) waits for another thread's munmap(2).
static void release(cunwind_engine *engine, cunwind_pending_stop *pending) {
  if (!engine->spare.request) engine->spare = pending->helper;
  else cunwind_helper_destroy(&pending->helper);
  memset(pending, 0, sizeof *pending);
}

bool cunwind_prepare_spare(cunwind_engine *engine) {
  if (!find(engine, 0)) return false;
  if (engine->spare.request) return true;
  if (cunwind_helper_init(&engine->spare) && (engine->spare.copy = cunwind_copy_create())) return true;
  cunwind_helper_destroy(&engine->spare);
  return false;
}

void cunwind_set_aside(cunwind_engine *engine, pid_t tid, bool is_wanted) {
  cunwind_pending_stop *pending = find(engine, 0);
  *pending = (cunwind_pending_stop){.tid = tid, .is_wanted = is_wanted, .helper = engine->helper};
  engine->helper = engine->spare;
  // They are of an earlier stop.
  engine->helper.request->held_nanoseconds = 0;
  engine->helper.request->error = 0;
  engine->helper.name_as_tracer = pending->helper.name_as_tracer;
  memset(&engine->spare, 0, sizeof engine->spare);
}

cunwind_status cunwind_pending_status(cunwind_engine *engine, pid_t tid) {
  const cunwind_pending_stop *pending = find(engine, tid);
  if (!pending) return CUNWIND_OK;
  return pending->is_wanted ? CUNWIND_PENDING : CUNWIND_FAILED;
}

void cunwind_tidy_pending(cunwind_engine *engine) {
  for (int index = 0; index < CUNWIND_MAX_PENDING_STOPS; index++) {
    cunwind_pending_stop *pending = &engine->pending[index];
    // A wanted stop stays until its result is taken. Its helper ends by itself, at its bound at the latest.
    if (pending->tid == 0 || pending->is_wanted) continue;
    if (cunwind_helper_has_ended(&pending->helper, 0)) release(engine, pending);
  }
}

void cunwind_cancel_stop(cunwind_engine *engine, pid_t tid) {
  cunwind_pending_stop *pending = tid == 0 ? NULL : find(engine, tid);
  if (!pending) return;
  pending->is_wanted = false;
  uint64_t until = cunwind_now() + CUNWIND_RELEASE_TIMEOUT_NANOSECONDS;
  __atomic_store_n(&pending->helper.request->waits_until, until, __ATOMIC_RELEASE);
  uint32_t stays = CUNWIND_HELPER_STAYS;
  __atomic_compare_exchange_n(&pending->helper.request->phase, &stays, CUNWIND_HELPER_IS_LEFT, false, __ATOMIC_ACQ_REL,
                              __ATOMIC_ACQUIRE);
  pending->helper.left_until = until + CUNWIND_HELPER_GRACE_NANOSECONDS;
  cunwind_tidy_pending(engine);
}

// A thread enters no system call between request and stop: the registers are of the call, if any, at the request.
void cunwind_store_answer(cunwind_engine *engine, const cunwind_stop_request *answer, cunwind_registers *registers,
                          cunwind_capture_info *info) {
  cunwind_registers_from_ptrace(registers, &answer->registers);
#if defined(__x86_64__)
  info->is_in_call = (long)answer->registers.orig_rax >= 0;
  info->system_call = (int64_t)answer->registers.orig_rax;
  for (int index = 0; index < 6; index++) info->arguments[index] = registers->value[cunwind_argument_registers[index]];
#else
  // ptrace does not show whether the thread was in a call, and the result has overwritten the first argument.
  info->is_in_call = false;
#endif
  info->copied_at = answer->copied_at;
  memcpy(info->target, answer->target, sizeof info->target);
  engine->context = answer->context;
}

cunwind_status cunwind_collect_stop(cunwind_engine *engine, cunwind_thread *thread, cunwind_stack *stack,
                                    cunwind_capture_info *info) {
  uint64_t begin = cunwind_now();
  memset(info, 0, sizeof *info);
  cunwind_clear(stack);
  cunwind_context_clear(&engine->context, CUNWIND_CONTEXT_NOT_READ);
  cunwind_pending_stop *pending = find(engine, thread->tid);
  if (!pending || !pending->is_wanted) return CUNWIND_NOT_PENDING;
  const cunwind_stop_request *answer = pending->helper.request;
  bool is_over = __atomic_load_n(&answer->alive, __ATOMIC_ACQUIRE) == 0 ||
                 __atomic_load_n(&answer->phase, __ATOMIC_ACQUIRE) == CUNWIND_HELPER_HAS_IT;
  if (!is_over && cunwind_now() < pending->helper.left_until) return CUNWIND_PENDING;
  if (!cunwind_helper_has_ended(&pending->helper, CUNWIND_HELPER_GRACE_NANOSECONDS)) {
    pending->is_wanted = false;
    return CUNWIND_TIMED_OUT;
  }
  cunwind_status status = answer->status;
  info->held_nanoseconds = answer->held_nanoseconds;
  info->error = status == CUNWIND_OK ? 0 : answer->error;
  if (status == CUNWIND_OK) {
    // After a capture, the unwinder and the reading of async callers use the engine's copy: swap the two.
    cunwind_stack_copy *taken = pending->helper.copy;
    pending->helper.copy = engine->helper.copy;
    engine->helper.copy = taken;
    cunwind_registers registers;
    cunwind_store_answer(engine, answer, &registers, info);
    info->stack_bytes = taken->length + taken->outer_length;
    cunwind_finish(engine, thread, taken, &registers, stack, false);
  }
  release(engine, pending);
  info->capture_nanoseconds = cunwind_now() - begin;
  return status;
}

void cunwind_pending_destroy(cunwind_engine *engine) {
  for (int index = 0; index < CUNWIND_MAX_PENDING_STOPS; index++) {
    cunwind_pending_stop *pending = &engine->pending[index];
    if (pending->tid == 0) continue;
    // Only the parent may kill its helper, not a child of fork(2).
    pending->helper.left_until = engine->process == cunwind_process_number() ? 0 : UINT64_MAX;
    // As with the engine's own helper, one that still runs keeps its memory.
    if (cunwind_helper_has_ended(&pending->helper, CUNWIND_HELPER_GRACE_NANOSECONDS)) release(engine, pending);
  }
  cunwind_helper_destroy(&engine->spare);
}
