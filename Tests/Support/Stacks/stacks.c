// Deep stacks in C. Each `stack_` function is the first function of a thread and never returns.

#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "ends.h"

#define NOINLINE __attribute__((noinline))

// Used after a call, so that the compiler cannot replace the call with a jump and remove the frame.
static void keep_frame(const volatile void *local) { __asm__ volatile("" ::"r"(local) : "memory"); }

NOINLINE static void recurse(int depth) {
  volatile char local[48] = {0};
  if (depth == 0) {
    end_in_read();
  } else {
    recurse(depth - 1);
  }
  keep_frame(local);
}

void stack_c_recursion(void) {
  recurse(100);
  keep_frame(&stack_reached);
}

NOINLINE static void grow(int depth) {
  volatile char *local = alloca(16 + (size_t)(depth * 37) % 200);
  local[0] = 1;
  if (depth == 0) {
    end_spinning();
  } else {
    grow(depth - 1);
  }
  keep_frame(local);
}

void stack_c_variable_frames(void) {
  grow(40);
  keep_frame(&stack_reached);
}

// Its prologue touches each page in a loop (-fstack-clash-protection), and the alignment needs a frame pointer.
NOINLINE static void fill(void) {
  _Alignas(64) volatile char local[60000];
  local[0] = 1;
  end_in_read();
  keep_frame(local);
}

void stack_c_large_frame(void) {
  fill();
  keep_frame(&stack_reached);
}

// Assembly without unwind information, which keeps a number where compilers keep the frame pointer.
void spin_with_number(void);
#ifdef __x86_64__
__asm__(".text; .type spin_with_number, @function; spin_with_number: push %rbp; mov $0x1234, %ebp; 1: jmp 1b");
#else
__asm__(".text; .type spin_with_number, %function; spin_with_number: b spin_with_number");
#endif

NOINLINE static void call_assembly(int size) {
  volatile char *local = alloca((size_t)size);
  local[0] = 1;
  note_thread();
  spin_with_number();
  keep_frame(local);
}

void stack_c_assembly(void) {
  call_assembly(40);
  keep_frame(&stack_reached);
}

static int compare(const void *left, const void *right) {
  (void)left;
  end_in_sleep();
  keep_frame(right);
  return 0;
}

void stack_c_sort_callback(void) {
  int numbers[200];
  for (int index = 0; index < 200; index++) numbers[index] = 200 - index;
  qsort(numbers, 200, sizeof numbers[0], compare);
  keep_frame(numbers);
}

static void visit(const void *node, VISIT order, int depth) {
  if (order == leaf) end_in_condition();
  keep_frame(node);
  keep_frame(&depth);
}

static int compare_keys(const void *left, const void *right) { return strcmp(left, right); }

void stack_c_tree_callback(void) {
  void *root = NULL;
  static char keys[26][2];
  for (int index = 0; index < 26; index++) {
    keys[index][0] = (char)('a' + index);
    tsearch(keys[index], &root, compare_keys);
  }
  twalk(root, visit);
  keep_frame(&root);
}

static void handle(int number) {
  (void)number;
  end_in_read();
  keep_frame(&stack_reached);
}

NOINLINE static void raise_at(int depth) {
  if (depth > 0) {
    raise_at(depth - 1);
  } else {
    raise(SIGUSR2);
  }
  keep_frame(&depth);
}

void stack_c_signal_handler(void) {
  signal(SIGUSR2, handle);
  raise_at(10);
  keep_frame(&stack_reached);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void initialize(void) {
  recurse(5);
  keep_frame(&once);
}

void stack_c_once(void) {
  pthread_once(&once, initialize);
  keep_frame(&once);
}
