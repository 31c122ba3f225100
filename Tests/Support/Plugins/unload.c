// Loads a library by a relative path, has it start a thread, and unloads it before the thread returns to its code.
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

typedef int start_function(pthread_t *, size_t, pid_t, void *(*)(void *), void *);

static sem_t unloaded;

static void *wait_until_unloaded(void *context) {
  while (sem_wait(&unloaded) != 0) {
  }
  return context;
}

int main(void) {
  void *library = dlopen("./threads.so", RTLD_NOW | RTLD_LOCAL);
  start_function *start = library ? (start_function *)dlsym(library, "clinux_start_thread") : NULL;
  if (!start || chdir("/") != 0 || sem_init(&unloaded, 0, 0) != 0) return 1;
  pthread_t thread;
  if (start(&thread, 64 << 10, 0, wait_until_unloaded, NULL) != 0 || dlclose(library) != 0) return 2;
  sem_post(&unloaded);
  return pthread_join(thread, NULL);
}
