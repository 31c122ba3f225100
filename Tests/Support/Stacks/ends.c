#define _GNU_SOURCE
#include "ends.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

int stack_reached;

void note_thread(void) { __atomic_store_n(&stack_reached, gettid(), __ATOMIC_RELEASE); }

__attribute__((noinline)) void end_in_read(void) {
  int ends[2];
  char byte;
  if (pipe(ends) < 0) _exit(1);
  note_thread();
  for (;;) (void)!read(ends[0], &byte, 1);
}

__attribute__((noinline)) void end_in_condition(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&mutex);
  note_thread();
  for (;;) pthread_cond_wait(&condition, &mutex);
}

__attribute__((noinline)) void end_in_sleep(void) {
  struct timespec hour = {3600, 0};
  note_thread();
  for (;;) nanosleep(&hour, NULL);
}

__attribute__((noinline)) void end_spinning(void) {
  note_thread();
#ifdef __x86_64__
  __asm__ volatile("1: jmp 1b");
#else
  __asm__ volatile("1: b 1b");
#endif
}
