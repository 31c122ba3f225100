// Pending stops, whose threads have not left the kernel yet, each with the memory of its helper.

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "Engine/engine.h"
#include "System/raw_system_call.h"

static cunwind_pending_stop *find(cunwind_engine *engine, pid_t tid) {
  for (int index = 0; index < CUNWIND_MAX_PENDING_STOPS; index++) {
    if (engine->pending[index].tid == tid) return &engine->pending[index];
  }
  return NULL;
}

// Keeps the memory as the spare: allocating it later may block, because mmap(2) waits for another thread's munmap(2).
static void release(cunwind_engine *engine, cunwind_pending_stop *pending) {
  if (!engine->spare_copy) {
    engine->spare.request = pending->helper.request;
    engine->spare.stack = pending->helper.stack;
    engine->spare_copy = pending->copy;
  } else {
    cunwind_helper_destroy(&pending->helper);
    cunwind_copy_destroy(pending->copy);
  }
  memset(pending, 0, sizeof *pending);
}

static bool has_answered(const cunwind_pending_stop *pending) {
  return __atomic_load_n(&pending->helper.request->alive, __ATOMIC_ACQUIRE) == 0;
}

bool cunwind_prepare_spare(cunwind_engine *engine) {
  if (!find(engine, 0)) return false;
  if (engine->spare_copy) return true;
  cunwind_stack_copy *copy = cunwind_copy_create();
  if (copy && cunwind_helper_init(&engine->spare)) {
    engine->spare_copy = copy;
    return true;
  }
  cunwind_copy_destroy(copy);
  cunwind_helper_destroy(&engine->spare);
  return false;
}

void cunwind_set_aside(cunwind_engine *engine, pid_t tid, bool is_wanted) {
  cunwind_pending_stop *pending = find(engine, 0);
  pending->tid = tid;
  pending->is_wanted = is_wanted;
  pending->helper = engine->helper;
  pending->copy = engine->copy;
  engine->helper = engine->spare;
  engine->helper.name_as_tracer = pending->helper.name_as_tracer;
  engine->copy = engine->spare_copy;
  memset(&engine->spare, 0, sizeof engine->spare);
  engine->spare_copy = NULL;
}

cunwind_status cunwind_pending_status(cunwind_engine *engine, pid_t tid) {
  const cunwind_pending_stop *pending = find(engine, tid);
  if (!pending) return CUNWIND_OK;
  return pending->is_wanted ? CUNWIND_PENDING : CUNWIND_FAILED;
}

void cunwind_tidy_pending(cunwind_engine *engine, uint64_t bound) {
  for (int index = 0; index < CUNWIND_MAX_PENDING_STOPS; index++) {
    cunwind_pending_stop *pending = &engine->pending[index];
    // A wanted stop stays until its result is taken. Its helper ends by itself, at its bound at the latest.
    if (pending->tid == 0 || pending->is_wanted) continue;
    if (cunwind_helper_has_ended(&pending->helper, bound)) release(engine, pending);
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
  cunwind_tidy_pending(engine, 0);
}

// A thread cannot enter another system call between the stop request and its stop. So the registers are those of the
// call, if any, that the thread was in at the request.
void cunwind_describe_stop(const cunwind_stop_request *answer, cunwind_capture_info *info) {
#if defined(__x86_64__)
  const cunwind_ptrace_registers *from = &answer->registers;
  info->is_in_call = (long)from->orig_rax >= 0;
  info->system_call = (int64_t)from->orig_rax;
  const uint64_t arguments[6] = {from->rdi, from->rsi, from->rdx, from->r10, from->r8, from->r9};
  memcpy(info->arguments, arguments, sizeof arguments);
#else
  // ptrace does not show whether the thread was in a call, and the result has overwritten the first argument.
  info->is_in_call = false;
#endif
  info->copied_at = answer->copied_at;
  memcpy(info->target, answer->target, sizeof info->target);
}

cunwind_status cunwind_collect_stop(cunwind_engine *engine, cunwind_thread *thread, cunwind_stack *stack,
                                    cunwind_capture_info *info) {
  uint64_t begin = cunwind_now();
  memset(info, 0, sizeof *info);
  cunwind_clear(stack);
  cunwind_context_clear(&engine->context, CUNWIND_CONTEXT_NOT_READ);
  cunwind_pending_stop *pending = find(engine, thread->tid);
  if (!pending || !pending->is_wanted) return CUNWIND_NOT_PENDING;
  uint32_t phase = __atomic_load_n(&pending->helper.request->phase, __ATOMIC_ACQUIRE);
  bool is_over = has_answered(pending) || phase == CUNWIND_HELPER_HAS_IT;
  if (!is_over && cunwind_now() < pending->helper.left_until) return CUNWIND_PENDING;
  if (!cunwind_helper_has_ended(&pending->helper, CUNWIND_HELPER_GRACE_NANOSECONDS)) {
    pending->is_wanted = false;
    return CUNWIND_TIMED_OUT;
  }
  const cunwind_stop_request *answer = pending->helper.request;
  cunwind_status status = answer->status;
  info->held_nanoseconds = answer->held_nanoseconds;
  info->error = status == CUNWIND_OK ? 0 : answer->error;
  if (status == CUNWIND_OK) {
    // After a capture, the unwinder and the reading of async callers use the engine's copy: swap the two.
    cunwind_stack_copy *taken = pending->copy;
    pending->copy = engine->copy;
    engine->copy = taken;
    cunwind_registers registers;
    cunwind_registers_from_ptrace(&registers, &answer->registers);
    cunwind_describe_stop(answer, info);
    engine->context = answer->context;
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
    pending->helper.left_until = engine->process == getpid() ? 0 : UINT64_MAX;
    // As with the engine's own helper, one that still runs keeps its memory.
    if (cunwind_helper_has_ended(&pending->helper, CUNWIND_HELPER_GRACE_NANOSECONDS)) release(engine, pending);
  }
  cunwind_helper_destroy(&engine->spare);
  cunwind_copy_destroy(engine->spare_copy);
}
