// Threads in postures that a stack is hard to take from.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"
#include "bounded.h"

#define ALTERNATE_STACK_BYTES 65536

struct cunwind_test_poser {
  cunwind_test_posture posture;
  uint32_t depth;
  pthread_t thread;
  pid_t tid;
  uint32_t is_posing, is_stopping;
  uint64_t rounds;
  sigjmp_buf way_out;
};

static __thread cunwind_test_poser *poser_of_thread;

static void go_round(cunwind_test_poser *poser) { __atomic_fetch_add(&poser->rounds, 1, __ATOMIC_RELAXED); }

static uint64_t rounds_of(const cunwind_test_poser *poser) { return __atomic_load_n(&poser->rounds, __ATOMIC_RELAXED); }

static void spin(cunwind_test_poser *poser) {
  __atomic_store_n(&poser->is_posing, 1, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&poser->is_stopping, __ATOMIC_ACQUIRE)) go_round(poser);
}

static void spin_in_handler(int number) {
  (void)number;
  spin(poser_of_thread);
}

static void leave_handler(int number) {
  (void)number;
  spin(poser_of_thread);
  siglongjmp(poser_of_thread->way_out, 1);
}

static void handle(int number, void (*handler)(int), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(number, &action, NULL);
}

static void use_alternate_stack(void) {
  stack_t stack = {.ss_size = ALTERNATE_STACK_BYTES};
  stack.ss_sp = mmap(NULL, ALTERNATE_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sigaltstack(&stack, NULL);
  handle(SIGUSR1, spin_in_handler, SA_ONSTACK);
  raise(SIGUSR1);
  stack_t none = {.ss_flags = SS_DISABLE};
  sigaltstack(&none, NULL);
  munmap(stack.ss_sp, ALTERNATE_STACK_BYTES);
}

void cunwind_test_sleep_in_vfork(uint32_t milliseconds) {
  struct timespec span = {milliseconds / 1000, milliseconds % 1000 * 1000000l};
  pid_t child = vfork();
  if (child == 0) {
    // The child borrows this thread's stack and its errno: a system call and nothing else.
    syscall(SYS_nanosleep, &span, NULL);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

static void sleep_in_vfork(cunwind_test_poser *poser) {
  __atomic_store_n(&poser->is_posing, 1, __ATOMIC_RELEASE);
  cunwind_test_sleep_in_vfork(400);
  go_round(poser);
}

static void call_null(cunwind_test_poser *poser) {
  void (*volatile function)(void) = NULL;
  struct sigaction before;
  sigaction(SIGSEGV, NULL, &before);
  if (sigsetjmp(poser->way_out, 1) == 0) {
    handle(SIGSEGV, leave_handler, 0);
    function();
  }
  sigaction(SIGSEGV, &before, NULL);
}

#if defined(__x86_64__)

// A function with a frame record and without unwind information, as Swift's libraries have them. `word` is in its locals.
__asm__(
    ".text\n"
    ".type cunwind_test_call_with_local, @function\n"
    "cunwind_test_call_with_local:\n"
    "  push %rbp\n"
    "  mov %rsp, %rbp\n"
    "  sub $32, %rsp\n"
    "  mov %rdx, (%rsp)\n"
    "  call *%rsi\n"
    "  leave\n"
    "  ret\n"
    ".size cunwind_test_call_with_local, . - cunwind_test_call_with_local\n");
void cunwind_test_call_with_local(cunwind_test_poser *poser, void (*function)(cunwind_test_poser *), uint64_t word);

// Where a call within the C library returns to; 0 when none is found.
static uint64_t return_address_in_libc(void) {
  enum { CALL = 0xe8, CALL_BYTES = 5, SEARCHED_BYTES = 4096 };
  void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  const uint8_t *code = library ? dlsym(library, "qsort") : NULL;
  Dl_info here, there;
  if (!code || !dladdr(code, &here)) return 0;
  for (const uint8_t *at = code; at < code + SEARCHED_BYTES; at++) {
    int32_t offset;
    if (*at != CALL) continue;
    memcpy(&offset, at + 1, sizeof offset);
    if (dladdr(at + CALL_BYTES + offset, &there) && there.dli_fbase == here.dli_fbase)
      return (uint64_t)(uintptr_t)at + CALL_BYTES;
  }
  return 0;
}

static void spin_below_leftover(cunwind_test_poser *poser) {
  uint64_t word = return_address_in_libc();
  // Without it there is nothing to be misled by: the poser makes no round, and the test fails.
  if (word) cunwind_test_call_with_local(poser, spin, word);
}

#else

// Only on x86-64 is the stack searched for return addresses.
static void spin_below_leftover(cunwind_test_poser *poser) { spin(poser); }

#endif

static void block_in_alloca(cunwind_test_poser *poser) {
  volatile char *bytes = __builtin_alloca(poser->depth * 16 + 100);
  bytes[0] = 0;
  __atomic_store_n(&poser->is_posing, 1, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&poser->is_stopping, __ATOMIC_ACQUIRE)) {
    volatile int result = poll(NULL, 0, 20);
    if (result == 0) go_round(poser);
  }
  bytes[0] = 1;
}

__attribute__((noinline)) int cunwind_test_posture_function(cunwind_test_poser *poser, uint32_t depth) {
  volatile char bytes[1000];
  bytes[0] = 1;
  if (depth > 0 && poser->posture != CUNWIND_TEST_IN_ALLOCA) {
    return cunwind_test_posture_function(poser, depth - 1) + bytes[0];
  }
  switch (poser->posture) {
    case CUNWIND_TEST_IN_VFORK:
      sleep_in_vfork(poser);
      break;
    case CUNWIND_TEST_IN_SIGNAL_HANDLER:
      handle(SIGUSR1, spin_in_handler, 0);
      raise(SIGUSR1);
      break;
    case CUNWIND_TEST_IN_ALTERNATE_STACK:
      use_alternate_stack();
      break;
    case CUNWIND_TEST_BELOW_LEFTOVER:
      spin_below_leftover(poser);
      break;
    case CUNWIND_TEST_CALLED_NULL:
      call_null(poser);
      break;
    case CUNWIND_TEST_IN_ALLOCA:
      block_in_alloca(poser);
      break;
    case CUNWIND_TEST_SPINNING:
    case CUNWIND_TEST_BLOCKING_SIGNALS:
      spin(poser);
      break;
  }
  return bytes[0];
}

bool cunwind_test_poser_contains(uint64_t address) {
  uint64_t start = (uint64_t)(uintptr_t)cunwind_test_posture_function;
  return address > start && address - start < 1024;
}

static void *pose(void *context) {
  cunwind_test_poser *poser = context;
  // The mask is inherited, and a test that dispatch runs has one that blocks nearly everything.
  sigset_t mask;
  sigemptyset(&mask);
  if (poser->posture == CUNWIND_TEST_BLOCKING_SIGNALS) sigfillset(&mask);
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  poser_of_thread = poser;
  __atomic_store_n(&poser->tid, gettid(), __ATOMIC_RELEASE);
  volatile int result = cunwind_test_posture_function(poser, poser->depth);
  (void)result;
  return NULL;
}

static void pause_briefly(void) {
  struct timespec span = {0, 1000000};
  nanosleep(&span, NULL);
}

cunwind_test_poser *cunwind_test_poser_start(cunwind_test_posture posture, uint32_t depth) {
  cunwind_test_poser *poser = calloc(1, sizeof *poser);
  if (!poser) return NULL;
  poser->posture = posture;
  poser->depth = depth;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1 << 20 | (size_t)depth * 2048);
  int failed = pthread_create(&poser->thread, &attributes, pose, poser);
  pthread_attr_destroy(&attributes);
  if (failed) {
    free(poser);
    errno = failed;
    return NULL;
  }
  for (int count = 0; count < 30000 && !__atomic_load_n(&poser->is_posing, __ATOMIC_ACQUIRE); count++) pause_briefly();
  if (!__atomic_load_n(&poser->is_posing, __ATOMIC_ACQUIRE)) {
    errno = ETIMEDOUT;
    return NULL;
  }
  // vfork and poll come a moment after the thread has said so.
  for (int count = 0; count < 10; count++) pause_briefly();
  return poser;
}

pid_t cunwind_test_poser_tid(const cunwind_test_poser *poser) { return poser->tid; }

uint64_t cunwind_test_poser_stop(cunwind_test_poser *poser) {
  // A busy machine may not run the thread for a while; one that was left stopped never runs.
  uint64_t before = rounds_of(poser);
  for (int count = 0; count < 2000 && rounds_of(poser) == before; count++) pause_briefly();
  uint64_t rounds = rounds_of(poser) - before;
  __atomic_store_n(&poser->is_stopping, 1, __ATOMIC_RELEASE);
  if (!cunwind_test_join(poser->thread)) return 0;
  if (poser->posture == CUNWIND_TEST_IN_VFORK) rounds = rounds_of(poser);
  free(poser);
  return rounds;
}
