// Capture by stop, the caller's side: creates the helper process, waits for it with a bound, and reaps it.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "Engine/engine.h"
#include "System/raw_system_call.h"

/// The time between two attempts to stop a thread that another engine's helper traces, in nanoseconds.
#define BUSY_PAUSE_NANOSECONDS 50000ull
/// The refusals in a row for a thread without a tracer that are taken as the system's.
#define UNTRACED_REFUSALS 3
/// A hold after which the control groups are compared anew, in nanoseconds: twenty times the usual one.
#define LONG_HOLD_NANOSECONDS 5000000ull

// Whether Yama may refuse because the helper was not named with PR_SET_PTRACER. If Yama's file cannot be read, because
// /proc hides it, only an attempt with the name shows that.
static bool yama_may_require_name(void) {
  char scope[2];
  if (cunwind_read_text("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof scope) < 0)
    return !cunwind_call_is_deadly(CUNWIND_CALL_NAME_TRACER);
  return scope[0] == '1';
}

// Returns the state letter of proc_pid_stat(5); 0: there is no such process or thread.
static char state_of(const char *directory, pid_t id) {
  char path[64], text[512];
  snprintf(path, sizeof path, "%s/%d/stat", directory, (int)id);
  if (cunwind_read_text(path, text, sizeof text) < 0) return 0;
  const char *state = cunwind_behind_field(text, 2);
  return state && *state != 0 ? state[1] : 0;
}

// Detaches from a helper whose thread has not stopped; the helper keeps waiting on its own, as `phase` says. False: its
// wait is over, or it is stopped itself and could not release the thread.
static bool leave(cunwind_helper_memory *helper, uint32_t phase) {
  char state = state_of("/proc", helper->unreaped);
  if (state == 'T' || state == 't') return false;
  bool stays = phase == CUNWIND_HELPER_STAYS;
  uint64_t until = cunwind_now() + (stays ? CUNWIND_PENDING_TIMEOUT_NANOSECONDS : CUNWIND_RELEASE_TIMEOUT_NANOSECONDS);
  __atomic_store_n(&helper->request->waits_until, until, __ATOMIC_RELEASE);
  uint32_t waits = CUNWIND_HELPER_WAITS;
  if (!__atomic_compare_exchange_n(&helper->request->phase, &waits, phase, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return false;
  helper->left_until = until + CUNWIND_HELPER_GRACE_NANOSECONDS;
  return true;
}

static cunwind_status run_once(cunwind_engine *engine, const cunwind_stop_order *order) {
  cunwind_helper_memory *helper = &engine->helper;
  cunwind_stop_request *request = helper->request;
  if (!cunwind_helper_has_ended(helper, 0)) {
    request->error = EBUSY;
    request->held_nanoseconds = 0;
    return CUNWIND_FAILED;
  }
  request->order = *order;
  request->copy = helper->copy;
  request->context.status = engine->context.status;
  request->waits_until = cunwind_now() + CUNWIND_STOP_TIMEOUT_NANOSECONDS + CUNWIND_RELEASE_TIMEOUT_NANOSECONDS;
  request->status = CUNWIND_FAILED;
  request->error = ECANCELED;
  request->target[0] = 0;
  request->held_nanoseconds = 0;
  request->may_begin = helper->name_as_tracer ? 0 : 1;
  request->phase = CUNWIND_HELPER_BEGINS;
  helper->copy->length = helper->copy->outer_length = 0;

  long made = cunwind_make_helper(helper);
  if (made < 0) {
    request->error = (int)-made;
    return made == -EPERM || made == -ENOSYS ? CUNWIND_REFUSED : CUNWIND_FAILED;
  }
  helper->unreaped = (pid_t)made;
  helper->left_until = 0;
  if (helper->name_as_tracer) {
    prctl(PR_SET_PTRACER, (unsigned long)made, 0, 0, 0);
    __atomic_store_n(&request->may_begin, 1, __ATOMIC_RELEASE);
    cunwind_raw(SYS_futex, (long)&request->may_begin, FUTEX_WAKE, 1, 0, 0, 0);
  }
  bool is_gone = cunwind_wait_until_gone(&request->alive, CUNWIND_STOP_TIMEOUT_NANOSECONDS);
  // Prepare the spare first: after that the helper may use its memory at any moment.
  bool has_spare = !is_gone && cunwind_prepare_spare(engine);
  bool stays = has_spare && order->may_stay && leave(helper, CUNWIND_HELPER_STAYS);
  bool is_left = !is_gone && !stays && leave(helper, CUNWIND_HELPER_IS_LEFT);
  if (!is_gone && !is_left && !stays)
    is_gone = cunwind_wait_until_gone(&request->alive, CUNWIND_HELPER_GRACE_NANOSECONDS);
  // The kernel does not show the tracer named before (0 at first): an app that named one under Yama 1 must do so again.
  if (helper->name_as_tracer) prctl(PR_SET_PTRACER, 0, 0, 0, 0);
  if (has_spare && (stays || is_left)) cunwind_set_aside(engine, order->tid, stays);
  if (stays) return CUNWIND_PENDING;
  // A helper that still runs and was not detached from is killed here; it may have answered before.
  if (is_left || !cunwind_helper_has_ended(helper, CUNWIND_HELPER_GRACE_NANOSECONDS)) return CUNWIND_TIMED_OUT;
  return !is_gone && request->status == CUNWIND_FAILED ? CUNWIND_TIMED_OUT : request->status;
}

// ptrace returns EPERM also for a thread that has ended but was not reaped (ptrace_attach, exit_state): not a refusal.
static bool has_ended(pid_t tid) {
  char state = state_of("/proc/self/task", tid);
  return state == 0 ? !cunwind_thread_exists(tid) : state == 'Z' || state == 'X';
}

// A thread has one tracer at a time (ptrace(2): EPERM for a second one). If that is the helper of another engine, this
// waits for its end. If it is another process, the refusal says nothing about the system: EBUSY. A tracer that is gone by
// the time of the check was such a helper, too, unless the kernel refuses again.
static cunwind_status run_unless_held(cunwind_engine *engine, const cunwind_stop_order *order) {
  uint64_t deadline = cunwind_now() + CUNWIND_BUSY_TIMEOUT_NANOSECONDS;
  for (int refusals = 0;;) {
    cunwind_status status = run_once(engine, order);
    if (status != CUNWIND_REFUSED || engine->helper.request->error != EPERM || has_ended(order->tid)) return status;
    pid_t tracer = cunwind_tracer(order->tid);
    if (tracer == 0 && ++refusals == UNTRACED_REFUSALS) return status;
    if (tracer != 0 && !cunwind_is_stop_helper(tracer)) {
      engine->helper.request->error = EBUSY;
      return status;
    }
    // Not without a tracer: on a slow machine the system's refusals take as long.
    if (tracer != 0 && cunwind_now() >= deadline) {
      engine->helper.request->error = EBUSY;
      return CUNWIND_FAILED;
    }
    cunwind_pause(BUSY_PAUSE_NANOSECONDS);
  }
}

cunwind_status cunwind_run_helper(cunwind_engine *engine, const cunwind_stop_order *order) {
  cunwind_helper_memory *helper = &engine->helper;
  cunwind_tidy_pending(engine);
  cunwind_status pending = cunwind_pending_status(engine, order->tid);
  if (pending != CUNWIND_OK) {
    helper->request->error = EBUSY;
    helper->request->held_nanoseconds = 0;
    return pending;
  }
  // Each time, because the app may have added a filter.
  if (cunwind_call_is_deadly(CUNWIND_CALL_PTRACE)) {
    helper->request->error = EPERM;
    return CUNWIND_REFUSED;
  }
  cunwind_stop_order ranked = *order;
  ranked.priority = cunwind_priority_over(order->tid);
  if (ranked.priority == CUNWIND_TOO_WEAK ||
      (ranked.priority > 0 && cunwind_call_is_deadly(CUNWIND_CALL_SET_SCHEDULING))) {
    helper->request->error = EBUSY;
    helper->request->held_nanoseconds = 0;
    return CUNWIND_REFUSED;
  }
  order = &ranked;
  cunwind_status status = run_unless_held(engine, order);
  if (status != CUNWIND_REFUSED) return status;
  if (has_ended(order->tid)) return CUNWIND_NO_SUCH_THREAD;
  // Name a tracer only after a refusal, so that the app keeps the tracer that it may have named.
  if (helper->request->error == EBUSY || helper->name_as_tracer || !yama_may_require_name()) return status;
  helper->name_as_tracer = true;
  status = run_unless_held(engine, order);
  // Yama was not the reason: do not name the helper from now on, so that the app's own tracer stays named.
  if (status == CUNWIND_REFUSED) helper->name_as_tracer = false;
  return status;
}

static cunwind_status stop_and_copy(cunwind_engine *engine, cunwind_thread *thread, const cunwind_stack_copy **copy,
                                    cunwind_registers *registers, cunwind_capture_info *info, bool may_stay) {
  // If the thread has ended, a thread of another process may have its id by now, and must not be stopped.
  if (!cunwind_thread_is_there(thread)) return CUNWIND_NO_SUCH_THREAD;
  if (cunwind_thread_is_in_other_group(thread)) {
    info->error = EBUSY;
    return CUNWIND_REFUSED;
  }
  cunwind_helper_touch(&engine->helper);
  cunwind_stack_copy_touch(engine->helper.copy, &thread->bounds);
  cunwind_stop_order order = {.tid = thread->tid, .bounds = thread->bounds, .may_stay = may_stay};
  order.context_layout = cunwind_context_prepare(engine, thread);
  order.thread_pointer = thread->thread_pointer;
  cunwind_status status = cunwind_run_helper(engine, &order);
  const cunwind_stop_request *answer = engine->helper.request;
  info->held_nanoseconds += answer->held_nanoseconds;
  // The thread or its captor may have gone to another group meanwhile.
  if (status == CUNWIND_TIMED_OUT || answer->held_nanoseconds > LONG_HOLD_NANOSECONDS) thread->groups_until = 0;
  info->error = status == CUNWIND_OK ? 0 : answer->error;
  if (status != CUNWIND_OK) return status;
  cunwind_store_answer(engine, answer, registers, info);
  *copy = engine->helper.copy;
  return CUNWIND_OK;
}

static cunwind_status copy_stopped(cunwind_engine *engine, cunwind_thread *thread, const cunwind_stack_copy **copy,
                                   cunwind_registers *registers, cunwind_capture_info *info) {
  return stop_and_copy(engine, thread, copy, registers, info, false);
}

static cunwind_status copy_when_stopped(cunwind_engine *engine, cunwind_thread *thread, const cunwind_stack_copy **copy,
                                        cunwind_registers *registers, cunwind_capture_info *info) {
  return stop_and_copy(engine, thread, copy, registers, info, true);
}

cunwind_status cunwind_capture_stop(cunwind_engine *engine, cunwind_thread *thread, cunwind_stack *stack,
                                    cunwind_capture_info *info) {
  return cunwind_capture_by(copy_stopped, engine, thread, stack, info);
}

cunwind_status cunwind_capture_stop_pending(cunwind_engine *engine, cunwind_thread *thread, cunwind_stack *stack,
                                            cunwind_capture_info *info) {
  return cunwind_capture_by(copy_when_stopped, engine, thread, stack, info);
}

cunwind_status cunwind_engine_probe_stop(cunwind_engine *engine, int tid, int *error) {
  cunwind_status status = cunwind_run_helper(engine, &(cunwind_stop_order){.tid = tid});
  if (error) *error = status == CUNWIND_OK ? 0 : engine->helper.request->error;
  return status == CUNWIND_OK || status == CUNWIND_REFUSED ? status : CUNWIND_FAILED;
}
