#include "common.h"
typedef struct {
  pthread_mutex_t m;
  volatile int ready;
} shared;
static shared *map(const char *path) {
  int fd = open(path, O_RDWR | O_CREAT, 0666);
  ftruncate(fd, 4096);
  return mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}
NOINLINE void take_the_shared_lock(shared *s) {
  pthread_mutex_lock(&s->m);
  sink++;
  pthread_mutex_unlock(&s->m);
}
void wait_shared(void) {
  shared *s = map(getenv("BH_SHM"));
  while (!s->ready) usleep(1000);
  printf("my tid %d, owner field %d, kind %d\n", (int)syscall(SYS_gettid), s->m.__data.__owner, s->m.__data.__kind);
  take_the_shared_lock(s);
}
#ifdef HOLDER
int main(int c, char **v) {
  shared *s = map(v[1]);
  pthread_mutexattr_t a;
  pthread_mutexattr_init(&a);
  pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
  if (c > 3) pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&s->m, &a);
  pthread_mutex_lock(&s->m);
  printf("holder pid %d\n", getpid());
  fflush(stdout);
  s->ready = 1;
  nap(atoi(v[2]));
  pthread_mutex_unlock(&s->m);
  nap(300);
}
#endif
