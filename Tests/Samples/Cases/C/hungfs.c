#include <sys/stat.h>
#include <sys/xattr.h>

#include "common.h"
// BH_STOP: the process that serves the file system; it is stopped for 800 ms.
static void *conti(void *x) {
  nap(800);
  kill(atoi(getenv("BH_STOP")), SIGCONT);
  return x;
}
static void halt(void) {
  pthread_t t;
  pthread_create(&t, 0, conti, 0);
  kill(atoi(getenv("BH_STOP")), SIGSTOP);
  nap(20);
}
static const char *f(void) { return getenv("BH_FILE"); }
NOINLINE void stat_file(void) {
  struct stat s;
  stat(f(), &s);
  sink++;
}
void stat_(void) {
  halt();
  stat_file();
}
// Spins while the file system hangs.
NOINLINE void spin_beside(void) {
  SPIN(700);
  sink++;
}
void beside(void) {
  halt();
  spin_beside();
}
static void *conti8(void *x) {
  nap(8000);
  kill(atoi(getenv("BH_STOP")), SIGCONT);
  return x;
}
void hold8(void) {
  pthread_t t;
  pthread_create(&t, 0, conti8, 0);
  kill(atoi(getenv("BH_STOP")), SIGSTOP);
  nap(20);
  printf("file system hangs\n");
}
