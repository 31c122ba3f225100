#define _GNU_SOURCE
#include "process.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

int cpreload_copy_variable(const char *name, char *to) {
  const char *value = getenv(name);
  if (!value || !*value || strlen(value) >= CPRELOAD_MAXIMUM_VALUE) return 0;
  strcpy(to, value);
  return 1;
}

void cpreload_leave_environment(void) {
  const char *preloaded = getenv("LD_PRELOAD");
  const char *others = preloaded ? strchr(preloaded, ':') : NULL;
  if (others) setenv("LD_PRELOAD", others + 1, 1);
  else unsetenv("LD_PRELOAD");
}

int cpreload_start_thread(void *(*body)(void *)) {
  static const int kept[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF};
  sigset_t all, before;
  sigfillset(&all);
  for (size_t index = 0; index < sizeof kept / sizeof *kept; index++) sigdelset(&all, kept[index]);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pthread_t thread;
  int status = pthread_create(&thread, NULL, body, NULL);
  if (status == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return status;
}
