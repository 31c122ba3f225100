// The signal handler, and the app's action that it replaces. The engine's signals are queued with a value that
// identifies slot and capture. Any other signal belongs to the app, and goes to the previous action.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "Engine/engine.h"
#include "System/raw_system_call.h"

/// The number of engines that can capture by signal at the same time.
#define MAX_SLOTS 16

/// The two low bits of a slot's `state`. The others count captures, so that a handler that is too late does nothing.
enum { SLOT_IDLE = 0, SLOT_ARMED = 1, SLOT_COPYING = 2, SLOT_DONE = 3 };
#define SLOT_STATE_MASK 3u

typedef struct cunwind_signal_slot {
  uint32_t is_taken;  ///< An engine uses the slot.
  uint32_t state;     ///< Futex.
  uint32_t sent;      ///< Signals sent, and below, handlers begun. If they differ, a signal may be pending.
  uint32_t arrived;
  uint64_t signals;  ///< Those that the slot's engine has sent: bit n - 1 is signal n.
  cunwind_stack_bounds bounds;
  const cunwind_context_layout *context_layout;  ///< NULL: the handler reads no context.
  cunwind_context context;
  cunwind_stack_copy copy;
  cunwind_registers registers;
  uint64_t handler_nanoseconds;
  pid_t last_tid;  ///< The last captured thread, and below, signal and time: its handler may not have returned yet.
  int last_signal;
  uint64_t last_nanoseconds;
} cunwind_signal_slot;

#define COOKIE_MARK 0x5357ull  // Bits 48...63; bits 32...47 are the slot, bits 0...31 its armed state.

static cunwind_signal_slot slots[MAX_SLOTS];

// Written before the handler is installed, and unchanged while it is installed, so that the handler can read them.
static struct sigaction previous_actions[65];
static uint32_t was_installed[65];

// Takes a free slot with a buffer; NULL with errno on failure.
static cunwind_signal_slot *claim_slot(void) {
  for (int index = 0; index < MAX_SLOTS; index++) {
    cunwind_signal_slot *slot = &slots[index];
    // A slot is not free while a late handler is still copying into it.
    uint32_t state = __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) & SLOT_STATE_MASK;
    uint32_t is_taken = 0;
    if (state == SLOT_COPYING ||
        !__atomic_compare_exchange_n(&slot->is_taken, &is_taken, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      continue;
    if (slot->copy.bytes || cunwind_stack_copy_init(&slot->copy)) {
      slot->signals = 0;
      return slot;
    }
    int error = errno;
    __atomic_store_n(&slot->is_taken, 0, __ATOMIC_RELEASE);
    errno = error;
    return NULL;
  }
  errno = ENOSPC;
  return NULL;
}

CUNWIND_BARE static void copy_into(cunwind_signal_slot *slot, uint32_t armed, const ucontext_t *context) {
  uint64_t begin = cunwind_now();
  uint32_t copying = (armed & ~SLOT_STATE_MASK) | SLOT_COPYING;
  if (!__atomic_compare_exchange_n(&slot->state, &armed, copying, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
  cunwind_registers_from_context(&slot->registers, context);
  cunwind_copy_stack(&slot->copy, slot->registers.value[CUNWIND_SP], &slot->bounds);
  if (slot->context_layout) cunwind_read_context(&slot->context, slot->context_layout, cunwind_own_thread_pointer());
  slot->handler_nanoseconds = cunwind_now() - begin;
  __atomic_store_n(&slot->state, copying | SLOT_DONE, __ATOMIC_RELEASE);
  cunwind_raw(SYS_futex, (long)&slot->state, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0, 0, 0);
}

// The signals whose default action is to be ignored (signal(7)).
static bool is_ignored_by_default(int number) {
  return number == SIGCHLD || number == SIGCONT || number == SIGURG || number == SIGWINCH;
}

static void hand_on(int number, siginfo_t *info, void *context) {
  const struct sigaction *previous = &previous_actions[number];
  if (previous->sa_flags & SA_SIGINFO) {
    previous->sa_sigaction(number, info, context);
  } else if (previous->sa_handler == SIG_DFL) {
    if (is_ignored_by_default(number)) return;
    // The default action cannot be called. So restore it and send the signal again: this thread blocks the signal until
    // the handler returns, and then the kernel carries out the default action.
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigaction(number, &by_default, NULL);
    cunwind_raw(SYS_tgkill, cunwind_raw(SYS_getpid, 0, 0, 0, 0, 0, 0), cunwind_raw(SYS_gettid, 0, 0, 0, 0, 0, 0),
                number, 0, 0, 0);
  } else if (previous->sa_handler != SIG_IGN) {
    previous->sa_handler(number);
  }
}

// Makes only raw system calls until the signal is known to be the app's, so that errno stays unchanged.
CUNWIND_BARE static void handle(int number, siginfo_t *info, void *context) {
  uint64_t cookie = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
  bool is_ours = info->si_code == SI_QUEUE && cookie >> 48 == COOKIE_MARK && ((cookie >> 32) & 0xffff) < MAX_SLOTS &&
                 info->si_pid == (pid_t)cunwind_raw(SYS_getpid, 0, 0, 0, 0, 0, 0);
  if (!is_ours) {
    hand_on(number, info, context);
    return;
  }
  cunwind_signal_slot *slot = &slots[(cookie >> 32) & 0xffff];
  copy_into(slot, (uint32_t)cookie, context);
  __atomic_fetch_add(&slot->arrived, 1, __ATOMIC_RELEASE);
}

static bool is_handler_ours(int signal_number, struct sigaction *current) {
  return sigaction(signal_number, NULL, current) == 0 && (current->sa_flags & SA_SIGINFO) &&
         current->sa_sigaction == handle;
}

// Installs our handler, and keeps the previous action to chain to. False with errno: EBUSY if the app has replaced ours.
// That one is not replaced in turn: it may chain to the engine's, and the two would call each other forever.
static bool install_handler(int signal_number) {
  struct sigaction current = {.sa_flags = 0};
  if (is_handler_ours(signal_number, &current)) return true;
  uint32_t before = 0;
  if (!__atomic_compare_exchange_n(&was_installed[signal_number], &before, 1, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_RELAXED)) {
    errno = EBUSY;
    return false;
  }
  previous_actions[signal_number] = current;
  // The app may interrupt its own calls with its handler. A signal without one interrupts none.
  bool is_handled = (current.sa_flags & SA_SIGINFO) || (current.sa_handler != SIG_DFL && current.sa_handler != SIG_IGN);
  int restarts = is_handled ? current.sa_flags & SA_RESTART : SA_RESTART;
  struct sigaction ours = {
      .sa_sigaction = handle, .sa_mask = current.sa_mask, .sa_flags = SA_SIGINFO | restarts | SA_ONSTACK};
  if (sigaction(signal_number, &ours, NULL) == 0) return true;
  __atomic_store_n(&was_installed[signal_number], 0, __ATOMIC_RELEASE);
  return false;
}

// Restores the previous action, if no slot uses our handler, it is still installed, and no signal of ours is pending.
static void remove_handler(int signal_number) {
  struct sigaction current;
  for (int index = 0; index < MAX_SLOTS; index++) {
    const cunwind_signal_slot *slot = &slots[index];
    if (!(slot->signals >> (signal_number - 1) & 1)) continue;
    if (__atomic_load_n(&slot->is_taken, __ATOMIC_ACQUIRE)) return;
    // A signal that has not arrived yet would trigger the old action, which for SIGPROF ends the process.
    if (__atomic_load_n(&slot->sent, __ATOMIC_ACQUIRE) != __atomic_load_n(&slot->arrived, __ATOMIC_ACQUIRE)) return;
  }
  if (!is_handler_ours(signal_number, &current)) return;
  if (sigaction(signal_number, &previous_actions[signal_number], NULL) == 0) {
    __atomic_store_n(&was_installed[signal_number], 0, __ATOMIC_RELEASE);
  }
}

// ---- The caller's side ----------------------------------------------------------------------------------------------

/// The longest time that a handler may need to return after it is done: it competes for the CPU like any thread.
#define HANDLER_RETURN_NANOSECONDS 5000000ull

static uint32_t state_of(const cunwind_signal_slot *slot) { return __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE); }

// Arms the slot for a new capture. False: the handler of an earlier capture, which timed out, is still copying.
static bool arm(cunwind_signal_slot *slot, uint32_t *armed) {
  uint32_t now = state_of(slot);
  if ((now & SLOT_STATE_MASK) == SLOT_COPYING) return false;
  *armed = ((now & ~SLOT_STATE_MASK) + SLOT_STATE_MASK + 1) | SLOT_ARMED;
  __atomic_store_n(&slot->state, *armed, __ATOMIC_RELEASE);
  return true;
}

// False: the handler did not copy the stack in time. It finds the slot disarmed, or still copies: no arming until done.
static bool wait_until_done(cunwind_signal_slot *slot, uint32_t armed) {
  uint64_t deadline = cunwind_now() + CUNWIND_SIGNAL_TIMEOUT_NANOSECONDS;
  for (;;) {
    uint32_t now = state_of(slot);
    if ((now & SLOT_STATE_MASK) == SLOT_DONE) return true;
    uint64_t time = cunwind_now();
    if (time >= deadline) {
      uint32_t expected = armed, idle = (armed & ~SLOT_STATE_MASK) | SLOT_IDLE;
      if (__atomic_compare_exchange_n(&slot->state, &expected, idle, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return false;
      }
      return (expected & SLOT_STATE_MASK) == SLOT_DONE;
    }
    cunwind_futex_wait(&slot->state, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, now, deadline - time);
  }
}

static long send_to(const cunwind_engine *engine, pid_t tid, int signal_number, uint32_t armed) {
  pid_t process = getpid();
  siginfo_t info;
  memset(&info, 0, sizeof info);
  info.si_signo = signal_number;
  info.si_code = SI_QUEUE;
  info.si_pid = process;
  info.si_uid = getuid();
  uint64_t slot = (uint64_t)(engine->signal_slot - slots);
  info.si_value.sival_ptr = (void *)(uintptr_t)(COOKIE_MARK << 48 | slot << 32 | armed);
  return cunwind_raw(SYS_rt_tgsigqueueinfo, process, tid, signal_number, (long)&info, 0, 0);
}

static bool blocks(const cunwind_thread_status *thread_status, int signal_number) {
  return thread_status->blocked_signals >> (signal_number - 1) & 1;
}

// Chooses the signal: the harmless one, unless the thread blocks it, as the workers of libdispatch do. Our own handler
// blocks the last one until it has returned, a moment after it reports that it is done.
static cunwind_status choose_signal(const cunwind_engine *engine, cunwind_thread *thread,
                                    cunwind_thread_status *thread_status, int *chosen) {
  const cunwind_signal_slot *slot = engine->signal_slot;
  for (;;) {
    if (!cunwind_thread_read_status(thread, thread_status)) return CUNWIND_NO_SUCH_THREAD;
    bool may_be_in_ours =
        slot && slot->last_tid == thread->tid && cunwind_now() - slot->last_nanoseconds < HANDLER_RETURN_NANOSECONDS;
    if (!may_be_in_ours || !blocks(thread_status, slot->last_signal)) break;
    cunwind_pause(20000);
  }
  int harmless = engine->harmless_signal_number;
  *chosen = harmless && !blocks(thread_status, harmless) ? harmless : engine->signal_number;
  return blocks(thread_status, *chosen) ? CUNWIND_SIGNAL_BLOCKED : CUNWIND_OK;
}

static cunwind_status copy_in_handler(cunwind_engine *engine, cunwind_thread *thread, const cunwind_stack_copy **copy,
                                      cunwind_registers *registers, cunwind_capture_info *info) {
  // The app may have added a filter that ends the process for this call.
  if (!cunwind_may_send_signals()) {
    info->error = EPERM;
    return CUNWIND_REFUSED;
  }
  // All zero: without /proc nothing says that the thread blocks a signal.
  cunwind_thread_status thread_status = {0};
  int signal_number;
  cunwind_status can_arrive = choose_signal(engine, thread, &thread_status, &signal_number);
  if (can_arrive != CUNWIND_OK) return can_arrive;
  if (!engine->signal_slot) engine->signal_slot = claim_slot();
  if (!engine->signal_slot || !install_handler(signal_number)) {
    info->error = errno;
    return CUNWIND_FAILED;
  }
  cunwind_signal_slot *slot = engine->signal_slot;
  slot->signals |= 1ull << (signal_number - 1);
  uint32_t armed;
  if (!arm(slot, &armed)) {
    info->error = EBUSY;
    return CUNWIND_FAILED;
  }
  slot->bounds = thread->bounds;
  cunwind_stack_copy_touch(&slot->copy, &slot->bounds);
  slot->context_layout = cunwind_context_layout_now();
  cunwind_context_clear(&slot->context, CUNWIND_CONTEXT_NOT_READ);
  __atomic_fetch_add(&slot->sent, 1, __ATOMIC_RELEASE);
  long failed = send_to(engine, thread->tid, signal_number, armed);
  if (failed < 0) {
    __atomic_fetch_sub(&slot->sent, 1, __ATOMIC_RELEASE);
    info->error = failed == -ESRCH ? 0 : (int)-failed;
    return failed == -ESRCH ? CUNWIND_NO_SUCH_THREAD : CUNWIND_FAILED;
  }
  if (!wait_until_done(slot, armed)) return CUNWIND_TIMED_OUT;
  slot->last_tid = thread->tid;
  slot->last_signal = signal_number;
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
  // It keeps its buffer, so that a late handler never uses freed memory.
  __atomic_store_n(&engine->signal_slot->is_taken, 0, __ATOMIC_RELEASE);
  engine->signal_slot = NULL;
  // Also in a child of fork(2): it has inherited the actions, but captures nothing.
  remove_handler(engine->signal_number);
  if (engine->harmless_signal_number) remove_handler(engine->harmless_signal_number);
}
