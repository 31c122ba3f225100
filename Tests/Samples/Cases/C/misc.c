#include "common.h"
void smallstack(void) {
  pthread_attr_t a;
  pthread_attr_init(&a);
  pthread_attr_setstacksize(&a, atoi(getenv("BH_STACK")) * 1024);
  printf("default stack %d\n", pthread_setattr_default_np(&a));
}
NOINLINE void long_nap_inner(void) {
  nap(3000);
  sink++;
}
void longnap(void) {
  long_nap_inner();
  sink++;
}
// BH_SWAP=from:to
void swap(void) {
  char b[1000];
  snprintf(b, sizeof b, "%s", getenv("BH_SWAP"));
  char *c = strchr(b, ':');
  *c = 0;
  if (rename(b, c + 1)) perror("rename");
}
// BH_STOP: the process that serves the file system; it is stopped for 8 s.
static void *go_on(void *x) {
  nap(8000);
  kill(atoi(getenv("BH_STOP")), SIGCONT);
  return x;
}
void hold8(void) {
  pthread_t t;
  pthread_create(&t, 0, go_on, 0);
  kill(atoi(getenv("BH_STOP")), SIGSTOP);
  nap(20);
  printf("file system hangs\n");
}
