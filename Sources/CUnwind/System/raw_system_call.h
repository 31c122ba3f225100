// System calls without the C library: for the helper process, which shares its parent's thread-local storage, and for
// the signal handler. They do not touch errno; a failure is a negative errno. Async-signal-safe: yes, all of them.

#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>

/// The attributes of every function that runs in the helper or in the handler: no stack-protector canary (it is read
/// through the thread pointer), no shadow memory of a sanitizer, and no loop compiled into a call of the C library.
/// `no_sanitize` alone keeps ThreadSanitizer's marks of entry and exit, in the parent's thread-local storage.
#if defined(__clang__)
#define CUNWIND_BARE                                                                \
  __attribute__((no_stack_protector, no_builtin, disable_sanitizer_instrumentation, \
                 no_sanitize("address", "thread", "memory", "undefined")))
#else
#define CUNWIND_BARE __attribute__((optimize("no-tree-loop-distribute-patterns", "no-stack-protector")))
#endif

/// The size of a kernel signal set, in bytes; the C library's has another size.
#define CUNWIND_SIGSET_BYTES 8

/// Makes a system call with up to six arguments. Returns the kernel's value: -4095...-1 is a negative errno.
CUNWIND_BARE static inline long cunwind_raw(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#else
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
#endif
}

/// Creates a child with clone(2). The child's own stack ends at `top` (16-byte aligned). It runs `function(argument)`
/// and ends with the result as its status. `tid` is for CLONE_PARENT_SETTID and CLONE_CHILD_CLEARTID. Returns the
/// child's id.
///
/// Does not use clone(3) of the C library: ThreadSanitizer intercepts it, and treats the child's memory as a copy.
CUNWIND_BARE static inline long cunwind_raw_clone(unsigned long flags, void *top, uint32_t *tid,
                                                  int (*function)(void *), void *argument) {
  // The child cannot use our frames: its function and argument are on its own stack.
  void **stack = (void **)top - 2;
  stack[0] = (void *)function;
  stack[1] = argument;
#if defined(__x86_64__)
  long result;
  register long r10 __asm__("r10") = (long)tid;
  register long r8 __asm__("r8") = 0;
  __asm__ volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"  // The outermost frame (psABI 3.4.1).
      "pop %%rax\n\t"
      "pop %%rdi\n\t"
      "call *%%rax\n\t"
      "mov %%eax, %%edi\n\t"
      "mov %[exit], %%eax\n\t"
      "syscall\n\t"
      "1:"
      : "=a"(result)
      : "a"((long)SYS_clone), "D"(flags), "S"(stack), "d"(tid), "r"(r10), "r"(r8), [exit] "i"(SYS_exit)
      : "rcx", "r11", "memory");
  return result;
#else
  register long x8 __asm__("x8") = SYS_clone;
  register long x0 __asm__("x0") = (long)flags;
  register long x1 __asm__("x1") = (long)stack;
  register long x2 __asm__("x2") = (long)tid;
  register long x3 __asm__("x3") = 0;
  register long x4 __asm__("x4") = (long)tid;
  __asm__ volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, xzr\n\t"
      "ldp x9, x0, [sp], #16\n\t"
      "blr x9\n\t"
      "mov x8, %[exit]\n\t"
      "svc #0\n\t"
      "1:"
      : "+r"(x0)
      : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), [exit] "i"(SYS_exit)
      : "memory");
  return x0;
#endif
}

#define CUNWIND_NUMBERED_PATH_BYTES 64

/// Stores `before`, the number and `after` as a path, without snprintf(3). They have at most 40 bytes beside the number.
CUNWIND_BARE static inline void cunwind_number_path(char *path, const char *before, uint64_t number,
                                                    const char *after) {
  char digits[20];
  unsigned length = 0, count = 0;
  while (*before) path[length++] = *before++;
  do digits[count++] = (char)('0' + number % 10);
  while ((number /= 10) > 0);
  while (count > 0) path[length++] = digits[--count];
  while (*after) path[length++] = *after++;
  path[length] = 0;
}

/// Reads a file's beginning as a string into `text`. Returns its length, 0 on failure; negative: it cannot be opened.
CUNWIND_BARE static inline long cunwind_read_text(const char *path, char *text, size_t size) {
  long file = cunwind_raw(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
  long got = file < 0 ? 0 : cunwind_raw(SYS_read, file, (long)text, (long)size - 1, 0, 0, 0);
  text[got > 0 ? got : 0] = 0;
  if (file < 0) return file;
  cunwind_raw(SYS_close, file, 0, 0, 0, 0, 0);
  return got > 0 ? got : 0;
}

/// Returns the text behind field `number` of proc_pid_stat(5), at least 2, with the blank before the next field; NULL if
/// there is none. The second field ends with the last ')': the name in it may contain one, too.
static inline const char *cunwind_behind_field(const char *stat, int number) {
  const char *field = strrchr(stat, ')');
  if (field) field++;
  for (int known = 2; field && known < number; known++) field = *field ? strchr(field + 1, ' ') : NULL;
  return field;
}

CUNWIND_BARE static inline uint64_t cunwind_clock(clockid_t clock) {
  struct timespec now;
  now.tv_sec = 0;
  now.tv_nsec = 0;
  cunwind_raw(SYS_clock_gettime, clock, (long)&now, 0, 0, 0, 0);
  return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

CUNWIND_BARE static inline struct timespec cunwind_timespec(uint64_t nanoseconds) {
  struct timespec time;
  time.tv_sec = (time_t)(nanoseconds / 1000000000ull);
  time.tv_nsec = (long)(nanoseconds % 1000000000ull);
  return time;
}

/// Waits on a futex while it has `value`, for at most `bound` nanoseconds. `operation` is FUTEX_WAIT, with
/// FUTEX_PRIVATE_FLAG where no other process has the futex.
CUNWIND_BARE static inline void cunwind_futex_wait(const uint32_t *word, int operation, uint32_t value,
                                                   uint64_t bound) {
  struct timespec left = cunwind_timespec(bound);
  cunwind_raw(SYS_futex, (long)word, operation, value, (long)&left, 0, 0);
}

/// Returns CLOCK_MONOTONIC in nanoseconds, without the vDSO, which the helper cannot reach.
CUNWIND_BARE static inline uint64_t cunwind_now(void) { return cunwind_clock(CLOCK_MONOTONIC); }

/// Returns the CPU time of the calling thread in nanoseconds.
CUNWIND_BARE static inline uint64_t cunwind_cpu_time(void) { return cunwind_clock(CLOCK_THREAD_CPUTIME_ID); }

// ---- What the helper needs -------------------------------------------------------------------------------------------

#pragma GCC visibility push(hidden)

/// A helper of the calling thread has much less of a CPU than the thread that it would stop.
#define CUNWIND_TOO_WEAK (-1)

/// Returns the priority that a helper of the calling thread needs to keep its CPU against all that the thread keeps it
/// against, 1 to 99; 0 for a thread without a real-time policy, or if /proc does not show it. CUNWIND_TOO_WEAK if the
/// helper has a nice value that is higher by ten, or SCHED_IDLE. Async-signal-safe: yes.
int cunwind_priority_over(pid_t tid);

/// Gives the calling thread a real-time priority, or at least the one below it. False if the system refuses both. Makes
/// only raw system calls. Async-signal-safe: yes.
bool cunwind_take_priority(int priority);

#pragma GCC visibility pop

// ---- Deadly calls ----------------------------------------------------------------------------------------------------

/// The calls of the engine that few programs make, so that a filter may kill for them.
typedef enum cunwind_rare_call {
  CUNWIND_CALL_READ_MEMORY,
  CUNWIND_CALL_PTRACE,
  CUNWIND_CALL_NAME_TRACER,
  CUNWIND_CALL_QUEUE_SIGNAL,
  CUNWIND_CALL_SET_SCHEDULING,
  CUNWIND_CALL_ROBUST_LIST,
  CUNWIND_RARE_CALLS
} cunwind_rare_call;

#pragma GCC visibility push(hidden)

/// Creates a child by cunwind_raw_clone() with all signals blocked, so that it runs no handler of the app. Uses raw calls,
/// because the C library's leave its own two signals unblocked. Async-signal-safe: yes.
long cunwind_clone_blocked(unsigned long flags, void *top, uint32_t *tid, int (*function)(void *), void *argument);

/// Reaps a child with any exit signal, within `bound` nanoseconds. True also if the app has. Async-signal-safe: yes.
bool cunwind_reap(pid_t pid, uint64_t bound);

/// Sleeps for `nanoseconds` without the C library's cancellation point. Async-signal-safe: yes.
void cunwind_pause(uint64_t nanoseconds);

/// Returns whether a seccomp filter kills the caller of `call`. Under a filter, a child process tries all calls, once
/// for each number of filters; later questions cost 10 us. True also where no child can be created, and, untried, with
/// more filters than at the process's first question.
bool cunwind_call_is_deadly(cunwind_rare_call call);

/// Returns the number of the calling thread's filters plus 1; 0: none. Before Linux 5.9 the number is not shown, and is
/// 0. Costs 0.1 us without a filter, 10 us with one.
uint32_t cunwind_seccomp_filters(void);

/// The same as of at most a millisecond ago, and cunwind_call_is_deadly() by it: for what reads many words, or asks for
/// many threads.
uint32_t cunwind_recent_seccomp_filters(void);
bool cunwind_call_was_deadly(cunwind_rare_call call);

/// Tries all calls in child processes, for at most two seconds. `shares_memory`: the children copy nothing. Stores a
/// bit for each call that ended its child. Returns false if there is no child.
bool cunwind_try_rare_calls(bool shares_memory, uint32_t *deadly);

#pragma GCC visibility pop
