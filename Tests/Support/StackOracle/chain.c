// Threads that sit at a random depth of random functions, and know their stack: each function writes its return address to
// a shadow stack when it is called. This file is built in many ways; what the threads know is true in each. For x86-64.

#define _GNU_SOURCE
#include "chain.h"

#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

// All functions that have entries are in one section, whose bounds the linker tells.
#define CHAIN __attribute__((noinline, section("chain_text")))
#define HIDDEN __attribute__((visibility("hidden")))
extern const char begin[] __asm__("__start_chain_text") HIDDEN, end[] __asm__("__stop_chain_text") HIDDEN;
extern const char asm_begin[] HIDDEN, asm_end[] HIDDEN;

// Used after a call, so that the compiler cannot replace the call by a jump.
static inline void keep(const volatile void *local) { __asm__ volatile("" ::"r"(local) : "memory"); }
static inline void reach(thread *me) { __atomic_store_n(&me->reached, 1, __ATOMIC_RELEASE); }
static inline void next(thread *me) { me->plan[me->step++](me); }

#define RECORD(name)       \
  long mine = me->depth++; \
  me->entries[mine] = (struct entry) { __builtin_return_address(0), (void *)(name) }
#define FUNCTION(name, ...)            \
  CHAIN static void name(thread *me) { \
    RECORD(name);                      \
    __VA_ARGS__;                       \
    me->depth = mine;                  \
    keep(me);                          \
  }

// Calls itself by name, and leaves the return addresses of these calls behind.
CHAIN static long c_dig(long depth) {
  volatile long local[3] = {depth};
  return (depth > 0 ? c_dig(depth - 1) : 0) + local[0];
}

// ---- Functions that call the next one -------------------------------------------------------------------------------

FUNCTION(c_plain, next(me))
FUNCTION(c_registers, next(me); __asm__ volatile("" ::: "rbx", "r12", "r13", "r14", "r15"))
// Has what earlier calls have left.
FUNCTION(c_array, volatile char local[3000]; local[0] = 1; next(me); keep(local))
// Has return addresses of its callers in a local variable.
FUNCTION(c_decoys, void *volatile local[12];
         for (int index = 0; index < 12; index++) local[index] = me->entries[(mine * 7 + index) % (mine + 1)].caller;
         next(me); keep(local))
FUNCTION(c_alloca, volatile char *local = alloca(16 + (size_t)(mine * 37) % 200); *local = 1; next(me); keep(local))
FUNCTION(c_aligned, _Alignas(64) volatile char local[200]; local[0] = 1; next(me); keep(local))
// Has more arguments than there are registers.
typedef void many(thread *, long, long, long, long, long, long, void *, long);
FUNCTION(c_arguments, many *call = (many *)(void *)me->plan[me->step++];
         call(me, 1, 2, 3, 4, 5, 6, me->entries[mine / 2].caller, 8))
FUNCTION(c_branches, for (long round = 0; round <= mine % 3; round++) if (round == mine % 3) next(me);
         else if (mine < 0) c_plain(me); else if (me->step > 64) return )

CHAIN static int c_compare(const void *left, const void *right) {
  thread *me = *(thread *const *)left;
  RECORD(c_compare);
  next(me);
  me->depth = mine;
  keep(right);
  return 0;
}
// Is called back by the C library.
FUNCTION(c_sort, thread *two[2] = {me, me}; qsort(two, 2, sizeof two[0], c_compare); keep(two))

CHAIN static void c_handler(int number, siginfo_t *info, void *context) {
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  thread *me = (thread *)registers[REG_RDI];
  RECORD(c_handler);
  next(me);
  registers[REG_RIP] += 2;
  me->depth = mine;
  keep(info);
  (void)number;
}
// Is interrupted by a signal between two instructions.
FUNCTION(c_signal, __asm__ volatile("ud2" ::"D"(me) : "memory"))
// The compiler knows that the call does not return, so that nothing follows it.
FUNCTION(c_last_call, void *volatile local[40]; local[0] = local[1] = local[2] = me->entries[mine / 2].caller; next(me);
         __builtin_unreachable())

// ---- Innermost functions: they never return -------------------------------------------------------------------------

FUNCTION(c_read, int ends[2]; char byte; if (pipe(ends)) return; reach(me); while (read(ends[0], &byte, 1)) continue)
FUNCTION(c_sleep, struct timespec hour = {3600, 0}; reach(me); while (mine >= 0) nanosleep(&hour, NULL))
FUNCTION(c_condition, pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&mutex);
         pthread_cond_t condition = PTHREAD_COND_INITIALIZER; reach(me);
         while (mine >= 0) pthread_cond_wait(&condition, &mutex))
FUNCTION(c_loop, volatile long local = 0; reach(me); while (mine >= 0) local++)
CHAIN static long c_busy_tick(volatile long *count) {
  volatile long local[5] = {*count};
  *count += local[0] % 3;
  return local[0];
}
FUNCTION(c_busy, volatile long local = 0; reach(me); while (c_busy_tick(&local) >= 0) continue)
// Is often in the stub of a call into another image.
FUNCTION(c_stub, reach(me); while (mine >= 0) getppid())
extern void asm_data(thread *, void *volatile *) HIDDEN;
FUNCTION(c_data, void *volatile local[4]; local[0] = (void *)&local[2];
         local[1] = local[2] = local[3] = me->entries[mine / 2].caller; asm_data(me, local); keep(local))
CHAIN static void c_return(thread *me) { keep(me); }

// ---- Plans ----------------------------------------------------------------------------------------------------------

extern function asm_framed HIDDEN, asm_plain HIDDEN, asm_arguments HIDDEN, asm_branches HIDDEN, asm_pointer HIDDEN,
    asm_aligned HIDDEN, asm_no_call HIDDEN, asm_tail HIDDEN, asm_callee_pops HIDDEN, asm_other_stack HIDDEN,
    asm_last_call HIDDEN, asm_red_zone HIDDEN, asm_unwritten HIDDEN, asm_epilogue HIDDEN, asm_call HIDDEN,
    asm_busy HIDDEN;
static function *const outer[] = {
    c_plain,     c_registers, c_array,       c_decoys,   c_alloca,        c_aligned,      c_arguments, c_branches,
    c_sort,      c_last_call, c_signal,      asm_framed, asm_plain,       asm_arguments,  asm_pointer, asm_branches,
    asm_aligned, asm_no_call, asm_last_call, asm_tail,   asm_callee_pops, asm_other_stack};
static function *const inner[] = {c_read, c_sleep,      c_condition,   c_loop,       c_busy,   c_stub,
                                  c_data, asm_red_zone, asm_unwritten, asm_epilogue, asm_call, asm_busy};
enum { OUTER = sizeof outer / sizeof outer[0], INNER = sizeof inner / sizeof inner[0], DEEPEST = 24, BYTES = 1 << 20 };
static long copied_by;  // The distance from the assembly to its copy in memory that is in no image.

static unsigned draw(thread *me, unsigned bound) {
  me->seed = me->seed * 1664525u + 1013904223u;
  return (me->seed >> 12) % bound;
}

static void make_plan(thread *me, int returns) {
  // One plan in three has only C, so that its stack has call frame information if the build has it.
  unsigned used = 0, steps = 1 + draw(me, DEEPEST), only_c = draw(me, 3) == 0;
  for (unsigned step = 0; step <= steps;) {
    int is_outer = step < steps;
    unsigned index = draw(me, is_outer ? OUTER : INNER);
    function *chosen = is_outer ? outer[index] : returns ? c_return : inner[index];
    const char *place = (const char *)(void *)chosen;
    int is_assembly = place >= asm_begin && place < asm_end;
    int is_once = (chosen == c_signal || chosen == asm_other_stack) && (used & 1u << index);
    int is_last = returns && (chosen == c_last_call || chosen == asm_last_call);
    if ((only_c && (is_assembly || chosen == c_data)) || is_once || is_last) continue;
    if (is_outer) used |= 1u << index;
    me->plan[step++] = is_assembly && draw(me, 4) == 0 ? (function *)(void *)(place + copied_by) : chosen;
  }
  me->step = 0;
}

static char *map(int protection) {
  void *address = mmap(NULL, BYTES, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) _exit(2);
  return address;
}

/// The first function of a thread; `argument` is its `thread`. Never returns.
CHAIN void *chain_main(void *argument) {
  thread *me = argument;
  RECORD(chain_main);
  me->tid = gettid();
  me->other = map(PROT_READ | PROT_WRITE) + BYTES;
  if (draw(me, 2)) sigaltstack(&(stack_t){.ss_sp = map(PROT_READ | PROT_WRITE), .ss_size = BYTES}, NULL);
  // Leave return addresses behind, above the later stack pointers.
  for (int round = 0; round < 3; round++) make_plan(me, 1), next(me);
  if (draw(me, 2)) c_dig(200);
  make_plan(me, 0);
  next(me);
  me->depth = mine;
  return NULL;
}

/// Copies the assembly to new memory, and prints where all is: `code LOW HIGH chain_prepare LOW HIGH ORIGINAL`.
void chain_prepare(void) {
  char *copy = map(PROT_READ | PROT_WRITE | PROT_EXEC) + 5;
  size_t length = (size_t)(asm_end - asm_begin);
  memcpy(copy, asm_begin, length);
  copied_by = copy - asm_begin;
  dprintf(1, "code %zu %zu %zu %zu %zu %zu\n", (size_t)begin, (size_t)end, (size_t)(void *)chain_prepare, (size_t)copy,
          (size_t)copy + length, (size_t)asm_begin);
  struct sigaction action = {.sa_sigaction = c_handler, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
  sigaction(SIGILL, &action, NULL);
}
