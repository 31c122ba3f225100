// Threads in states in which a stack is hard to capture.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"
#include "Support/bounded.h"

#define ALTERNATE_STACK_BYTES 65536

struct cunwind_test_thread {
  cunwind_test_posture posture;
  uint32_t depth;
  pthread_t thread;
  pid_t tid;
  uint32_t is_posing, is_stopping;
  /// An event that ends the child of a thread in vfork(2).
  int end;
  uint64_t rounds;
  sigjmp_buf way_out;
};

static __thread cunwind_test_thread *poser_of_thread;

static void go_round(cunwind_test_thread *thread_state) {
  __atomic_fetch_add(&thread_state->rounds, 1, __ATOMIC_RELAXED);
}

static uint64_t rounds_of(const cunwind_test_thread *thread_state) {
  return __atomic_load_n(&thread_state->rounds, __ATOMIC_RELAXED);
}

static void spin(cunwind_test_thread *thread_state) {
  __atomic_store_n(&thread_state->is_posing, 1, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&thread_state->is_stopping, __ATOMIC_ACQUIRE)) go_round(thread_state);
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
    // The child shares this thread's stack and errno, so it makes only a system call.
    syscall(SYS_nanosleep, &span, NULL);
    _exit(0);
  }
  // Without a sleep, which would be interruptible: the child wakes this thread a moment before it can be reaped.
  while (child > 0 && waitpid(child, NULL, WNOHANG) == 0) continue;
}

static void wait_in_vfork(cunwind_test_thread *thread_state) {
  uint64_t count;
  __atomic_store_n(&thread_state->is_posing, 1, __ATOMIC_RELEASE);
  pid_t child = vfork();
  if (child == 0) {
    // Does not outlive the process, which may be killed.
    syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    syscall(SYS_read, thread_state->end, &count, sizeof count);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  go_round(thread_state);
}

static void call_null(cunwind_test_thread *thread_state) {
  void (*volatile function)(void) = NULL;
  struct sigaction before;
  sigaction(SIGSEGV, NULL, &before);
  if (sigsetjmp(thread_state->way_out, 1) == 0) {
    handle(SIGSEGV, leave_handler, 0);
    function();
  }
  sigaction(SIGSEGV, &before, NULL);
}

#if defined(__x86_64__)

// A function with a frame record but no unwind information, as in Swift's libraries. `word` is in its locals.
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
void cunwind_test_call_with_local(cunwind_test_thread *thread_state, void (*function)(cunwind_test_thread *),
                                  uint64_t word);

// Returns the return address of a call in the C library; 0 if none is found.
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

static void spin_below_leftover(cunwind_test_thread *thread_state) {
  uint64_t word = return_address_in_libc();
  // Without such a word the thread makes no round, and the test fails.
  if (word) cunwind_test_call_with_local(thread_state, spin, word);
}

#else

// The engine searches the stack for return addresses only on x86-64.
static void spin_below_leftover(cunwind_test_thread *thread_state) { spin(thread_state); }

#endif

// Calls `spin` from code that no image has, as a JIT compiler does.
static void spin_under_new_code(cunwind_test_thread *thread_state) {
#if defined(__x86_64__)
  // push %rbp; mov %rsp, %rbp; call *%rsi; pop %rbp; ret
  static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3};
#else
  // stp x29, x30, [sp, #-16]!; mov x29, sp; blr x1; ldp x29, x30, [sp], #16; ret
  static const uint32_t code[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0020, 0xa8c17bfd, 0xd65f03c0};
#endif
  uint8_t *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return;
  memcpy(made, code, sizeof code);
  __builtin___clear_cache((char *)made, (char *)made + sizeof code);
  ((void (*)(cunwind_test_thread *, void (*)(cunwind_test_thread *)))(void *)made)(thread_state, spin);
  munmap(made, 4096);
}

static void block_in_alloca(cunwind_test_thread *thread_state) {
  volatile char *bytes = __builtin_alloca(thread_state->depth * 16 + 100);
  bytes[0] = 0;
  __atomic_store_n(&thread_state->is_posing, 1, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&thread_state->is_stopping, __ATOMIC_ACQUIRE)) {
    volatile int result = poll(NULL, 0, 20);
    if (result == 0) go_round(thread_state);
  }
  bytes[0] = 1;
}

__attribute__((noinline)) int cunwind_test_posture_function(cunwind_test_thread *thread_state, uint32_t depth) {
  volatile char bytes[1000];
  bytes[0] = 1;
  if (depth > 0 && thread_state->posture != CUNWIND_TEST_IN_ALLOCA) {
    return cunwind_test_posture_function(thread_state, depth - 1) + bytes[0];
  }
  switch (thread_state->posture) {
    case CUNWIND_TEST_IN_VFORK:
      wait_in_vfork(thread_state);
      break;
    case CUNWIND_TEST_IN_SIGNAL_HANDLER:
      handle(SIGUSR1, spin_in_handler, 0);
      raise(SIGUSR1);
      break;
    case CUNWIND_TEST_IN_ALTERNATE_STACK:
      use_alternate_stack();
      break;
    case CUNWIND_TEST_BELOW_LEFTOVER:
      spin_below_leftover(thread_state);
      break;
    case CUNWIND_TEST_UNDER_NEW_CODE:
      spin_under_new_code(thread_state);
      break;
    case CUNWIND_TEST_CALLED_NULL:
      call_null(thread_state);
      break;
    case CUNWIND_TEST_IN_ALLOCA:
      block_in_alloca(thread_state);
      break;
    case CUNWIND_TEST_SPINNING:
    case CUNWIND_TEST_BLOCKING_SIGNALS:
      spin(thread_state);
      break;
  }
  return bytes[0];
}

bool cunwind_test_thread_contains(uint64_t address) {
  uint64_t start = (uint64_t)(uintptr_t)cunwind_test_posture_function;
  return address > start && address - start < 1024;
}

static void *pose(void *context) {
  cunwind_test_thread *thread_state = context;
  // Set the signal mask: on a thread of libdispatch the inherited one blocks nearly every signal.
  sigset_t mask;
  sigemptyset(&mask);
  if (thread_state->posture == CUNWIND_TEST_BLOCKING_SIGNALS) sigfillset(&mask);
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  poser_of_thread = thread_state;
  __atomic_store_n(&thread_state->tid, gettid(), __ATOMIC_RELEASE);
  volatile int result = cunwind_test_posture_function(thread_state, thread_state->depth);
  (void)result;
  return NULL;
}

static void pause_briefly(void) {
  struct timespec span = {0, 1000000};
  nanosleep(&span, NULL);
}

cunwind_test_thread *cunwind_test_thread_start(cunwind_test_posture posture, uint32_t depth) {
  cunwind_test_thread *thread_state = calloc(1, sizeof *thread_state);
  if (!thread_state) return NULL;
  thread_state->posture = posture;
  thread_state->depth = depth;
  thread_state->end = eventfd(0, EFD_CLOEXEC);
  if (thread_state->end < 0) {
    free(thread_state);
    return NULL;
  }
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1 << 20 | (size_t)depth * 2048);
  int failed = pthread_create(&thread_state->thread, &attributes, pose, thread_state);
  pthread_attr_destroy(&attributes);
  if (failed) {
    close(thread_state->end);
    free(thread_state);
    errno = failed;
    return NULL;
  }
  for (int count = 0; count < 30000 && !__atomic_load_n(&thread_state->is_posing, __ATOMIC_ACQUIRE); count++)
    pause_briefly();
  if (!__atomic_load_n(&thread_state->is_posing, __ATOMIC_ACQUIRE)) {
    errno = ETIMEDOUT;
    return NULL;
  }
  // The thread calls vfork or poll a moment after it has reported that.
  for (int count = 0; count < 10; count++) pause_briefly();
  return thread_state;
}

pid_t cunwind_test_thread_tid(const cunwind_test_thread *thread_state) { return thread_state->tid; }

uint64_t cunwind_test_thread_stop(cunwind_test_thread *thread_state) {
  eventfd_write(thread_state->end, 1);
  // On a busy machine the thread may not run for a while; a thread that was left stopped never runs.
  uint64_t before = rounds_of(thread_state);
  for (int count = 0; count < 2000 && rounds_of(thread_state) == before; count++) pause_briefly();
  uint64_t rounds = rounds_of(thread_state) - before;
  __atomic_store_n(&thread_state->is_stopping, 1, __ATOMIC_RELEASE);
  if (!cunwind_test_join(thread_state->thread)) return 0;
  if (thread_state->posture == CUNWIND_TEST_IN_VFORK) rounds = rounds_of(thread_state);
  close(thread_state->end);
  free(thread_state);
  return rounds;
}
