// One thread per kind of lock: the locks of the allocator, the dynamic linker, the thread list, fork, stdio, the
// kernel, and C++ exceptions.

#define _GNU_SOURCE
#include "Checks/churn.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Support/bounded.h"

static void allocate(cunwind_test_churner *self) {
  void *blocks[32];
  for (int index = 0; index < 32; index++) blocks[index] = malloc(16u << (index % 14));
  for (int index = 0; index < 32; index++) {
    if (blocks[index]) memset(blocks[index], 1, 16);
    free(blocks[index]);
  }
  (void)self;
}

static void load_and_unload(cunwind_test_churner *self) {
  // Small libraries that are in every glibc system and that this program does not link.
  static const char *const names[] = {"libthread_db.so.1", "libBrokenLocale.so.1", "libanl.so.1"};
  for (int index = 0; index < 3; index++) {
    void *library = dlopen(names[index], RTLD_NOW | RTLD_LOCAL);
    if (library) dlclose(library);
  }
  (void)self;
}

static void *return_at_once(void *context) { return context; }

static void create_and_join(cunwind_test_churner *self) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, return_at_once, self) == 0) pthread_join(thread, NULL);
}

static void await(cunwind_test_churner *self, pid_t child) {
  int status;
  if (child < 0) return;
  while (waitpid(child, &status, 0) < 0) {
    if (errno == EINTR) continue;
    self->lost_children++;
    return;
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) self->lost_children++;
}

static void fork_and_wait(cunwind_test_churner *self) {
  pid_t child = fork();
  if (child == 0) _exit(7);
  await(self, child);
}

static void vfork_and_wait(cunwind_test_churner *self) {
  pid_t child = vfork();
  if (child == 0) _exit(7);
  await(self, child);
}

// To /dev/null, where the stress test has sent standard output.
static void print(cunwind_test_churner *self) {
  for (int index = 0; index < 50; index++) printf("%d %s %f\n", index, "text", (double)self->rounds);
  fflush(stdout);
}

static void throw_and_catch(cunwind_test_churner *self) {
  if (!cunwind_test_throw_and_catch()) self->lost_exceptions++;
}

static void change_mappings(cunwind_test_churner *self) {
  char *pages = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return;
  memset(pages, 1, 65536);
  mprotect(pages, 4096, PROT_READ);
  munmap(pages, 65536);
  // A signal to itself, so that a signal-delivery stop can come before the engine's stop.
  syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1);
  (void)self;
}

static void ignore(int number) { (void)number; }

static void *churn(void *context) {
  static void (*const kinds[CUNWIND_TEST_CHURNERS])(cunwind_test_churner *) = {
      allocate,       load_and_unload, create_and_join, fork_and_wait,
      vfork_and_wait, print,           throw_and_catch, change_mappings};
  cunwind_test_churner *self = context;
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, NULL);
  __atomic_store_n(&self->tid, gettid(), __ATOMIC_RELEASE);
  while (!__atomic_load_n(&self->is_stopping, __ATOMIC_ACQUIRE)) {
    kinds[self->kind](self);
    __atomic_fetch_add(&self->rounds, 1, __ATOMIC_RELEASE);
  }
  return NULL;
}

int cunwind_test_churn_start(cunwind_test_churner churners[CUNWIND_TEST_CHURNERS]) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = ignore;
  sigaction(SIGUSR1, &action, NULL);
  memset(churners, 0, CUNWIND_TEST_CHURNERS * sizeof *churners);
  for (int kind = 0; kind < CUNWIND_TEST_CHURNERS; kind++) {
    churners[kind].kind = kind;
    churners[kind].loads_libraries = kind == 1;
    int failed = pthread_create(&churners[kind].thread, NULL, churn, &churners[kind]);
    if (failed) return failed;
  }
  for (int kind = 0; kind < CUNWIND_TEST_CHURNERS; kind++) {
    while (__atomic_load_n(&churners[kind].tid, __ATOMIC_ACQUIRE) == 0) usleep(100);
  }
  return 0;
}

void cunwind_test_churn_stop(cunwind_test_churner churners[CUNWIND_TEST_CHURNERS]) {
  for (int kind = 0; kind < CUNWIND_TEST_CHURNERS; kind++) {
    __atomic_store_n(&churners[kind].is_stopping, 1, __ATOMIC_RELEASE);
  }
  for (int kind = 0; kind < CUNWIND_TEST_CHURNERS; kind++) {
    if (churners[kind].thread) churners[kind].is_stuck = !cunwind_test_join(churners[kind].thread);
  }
}
