// Capture by signal, the caller's side: checks that the signal can arrive, sends it, waits with a bound.

#define _GNU_SOURCE
#include "Methods/signal_capture.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <unistd.h>

#include "Engine/engine.h"
#include "System/raw_system_call.h"

/// The longest time that a handler may need to return after it is done: it competes for the CPU like any thread.
#define HANDLER_RETURN_NANOSECONDS 5000000ull

static uint32_t state_of(const cunwind_signal_slot *slot) { return __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE); }

// Arms the slot for a new capture. False: the handler of an earlier capture, which timed out, is still copying.
static bool arm(cunwind_signal_slot *slot, uint32_t *armed) {
  uint32_t now = state_of(slot);
  if ((now & CUNWIND_SLOT_STATE_MASK) == CUNWIND_SLOT_COPYING) return false;
  *armed = ((now & ~CUNWIND_SLOT_STATE_MASK) + CUNWIND_SLOT_STATE_MASK + 1) | CUNWIND_SLOT_ARMED;
  __atomic_store_n(&slot->state, *armed, __ATOMIC_RELEASE);
  return true;
}

// True: the handler has copied the stack. False: it did not in time. It will find the slot disarmed; or it is copying,
// and the slot cannot be armed again until it is done.
static bool wait_until_done(cunwind_signal_slot *slot, uint32_t armed) {
  uint64_t deadline = cunwind_now() + CUNWIND_SIGNAL_TIMEOUT_NANOSECONDS;
  for (;;) {
    uint32_t now = state_of(slot);
    if ((now & CUNWIND_SLOT_STATE_MASK) == CUNWIND_SLOT_DONE) return true;
    uint64_t time = cunwind_now();
    if (time >= deadline) {
      uint32_t expected = armed, idle = (armed & ~CUNWIND_SLOT_STATE_MASK) | CUNWIND_SLOT_IDLE;
      if (__atomic_compare_exchange_n(&slot->state, &expected, idle, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return false;
      }
      return (expected & CUNWIND_SLOT_STATE_MASK) == CUNWIND_SLOT_DONE;
    }
    struct timespec left = {(time_t)((deadline - time) / 1000000000ull), (long)((deadline - time) % 1000000000ull)};
    cunwind_raw(SYS_futex, (long)&slot->state, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, now, (long)&left, 0, 0);
  }
}

static long send_to(const cunwind_engine *engine, pid_t tid, uint32_t armed) {
  siginfo_t info;
  memset(&info, 0, sizeof info);
  info.si_signo = engine->signal_number;
  info.si_code = SI_QUEUE;
  info.si_pid = engine->process;
  info.si_uid = getuid();
  info.si_value.sival_ptr = (void *)(uintptr_t)cunwind_signal_cookie(engine->signal_slot, armed);
  return cunwind_raw(SYS_rt_tgsigqueueinfo, engine->process, tid, engine->signal_number, (long)&info, 0, 0);
}

// Our own handler blocks the signal until it has returned, a moment after it reports that it is done.
static cunwind_status wait_for_own_handler(const cunwind_engine *engine, cunwind_thread *thread,
                                           cunwind_thread_status *thread_status) {
  const cunwind_signal_slot *slot = engine->signal_slot;
  for (;;) {
    if (!cunwind_thread_read_status(thread, thread_status)) return CUNWIND_NO_SUCH_THREAD;
    if (!thread_status->signal_is_blocked) return CUNWIND_OK;
    bool may_be_ours =
        slot && slot->last_tid == thread->tid && cunwind_now() - slot->last_nanoseconds < HANDLER_RETURN_NANOSECONDS;
    if (!may_be_ours) return CUNWIND_SIGNAL_BLOCKED;
    cunwind_pause(20000);
  }
}

static cunwind_status copy_in_handler(cunwind_engine *engine, cunwind_thread *thread, const cunwind_stack_copy **copy,
                                      cunwind_registers *registers, cunwind_capture_info *info) {
  cunwind_thread_status thread_status;
  cunwind_status can_arrive = wait_for_own_handler(engine, thread, &thread_status);
  if (can_arrive != CUNWIND_OK) return can_arrive;
  if (!engine->signal_slot) engine->signal_slot = cunwind_signal_slot_take(engine->signal_number);
  if (!engine->signal_slot || !cunwind_signal_handler_install(engine->signal_number)) {
    info->error = errno;
    return CUNWIND_FAILED;
  }
  cunwind_signal_slot *slot = engine->signal_slot;
  uint32_t armed;
  if (!arm(slot, &armed)) {
    info->error = EBUSY;
    return CUNWIND_FAILED;
  }
  slot->bounds = thread->bounds;
  slot->context_layout = cunwind_context_layout_now();
  cunwind_context_clear(&slot->context, CUNWIND_CONTEXT_NOT_READ);
  __atomic_fetch_add(&slot->sent, 1, __ATOMIC_RELEASE);
  long failed = send_to(engine, thread->tid, armed);
  if (failed < 0) {
    __atomic_fetch_sub(&slot->sent, 1, __ATOMIC_RELEASE);
    info->error = failed == -ESRCH ? 0 : (int)-failed;
    return failed == -ESRCH ? CUNWIND_NO_SUCH_THREAD : CUNWIND_FAILED;
  }
  if (!wait_until_done(slot, armed)) return CUNWIND_TIMED_OUT;
  slot->last_tid = thread->tid;
  slot->last_nanoseconds = cunwind_now();
  info->held_nanoseconds += slot->handler_nanoseconds;
  *registers = slot->registers;
  engine->context = slot->context;
  *copy = &slot->copy;
  return CUNWIND_OK;
}

cunwind_status cunwind_capture_signal(cunwind_engine *engine, cunwind_thread *thread, cunwind_stack *stack,
                                      cunwind_capture_info *info) {
  return cunwind_capture_by(copy_in_handler, engine, thread, stack, info);
}

void cunwind_signal_slot_destroy(cunwind_engine *engine) {
  if (!engine->signal_slot) return;
  cunwind_signal_slot_give_back(engine->signal_slot);
  engine->signal_slot = NULL;
  // Also in a child of fork(2): it has inherited the actions, but captures nothing.
  cunwind_signal_handler_remove(engine->signal_number);
}
