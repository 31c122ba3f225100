#include <locale.h>
#include <poll.h>
#include <sched.h>
#include <sys/select.h>

#include "common.h"
void slack(void) { prctl(PR_SET_TIMERSLACK, 3000000000ul); }
void locale(void) { printf("locale %s %.1f\n", setlocale(LC_ALL, "de_DE.UTF-8"), 1.5); }
NOINLINE void sleep_by_poll(void) {
  poll(0, 0, 600);
  sink++;
}
NOINLINE void sleep_by_select(void) {
  struct timeval t = {0, 600000};
  select(0, 0, 0, 0, &t);
  sink++;
}
NOINLINE void sleep_by_sigtimedwait(void) {
  sigset_t s;
  sigemptyset(&s);
  sigaddset(&s, SIGRTMIN);
  struct timespec t = {0, 600000000};
  sigtimedwait(&s, 0, &t);
  sink++;
}
void by_poll(void) {
  sleep_by_poll();
  sink++;
}
void by_select(void) {
  sleep_by_select();
  sink++;
}
void by_sigtimedwait(void) {
  sleep_by_sigtimedwait();
  sink++;
}
void fifo(void) {
  struct sched_param p = {50};
  cpu_set_t c;
  CPU_ZERO(&c);
  CPU_SET(1, &c);
  printf("affinity %d fifo %d\n", sched_setaffinity(0, sizeof c, &c), sched_setscheduler(0, SCHED_FIFO, &p));
}
void forkexit(void) {
  fflush(0);
  pid_t p = fork();
  if (p == 0) {
    exit(0);
  }
  int s;
  waitpid(p, &s, 0);
  printf("child status %x\n", s);
}
void forkreturn(void) {
  fflush(0);
  pid_t p = fork();
  if (p == 0) {
    alarm(3);
    nap(1200);
    exit(0);
  }
  printf("child %d goes on\n", p);
}
NOINLINE void wait_for_stopped_child(pid_t p) {
  int s;
  waitpid(p, &s, 0);
  sink++;
}
static void *continuer(void *x) {
  nap(700);
  kill((pid_t)(long)x, SIGCONT);
  return 0;
}
void stopped_child(void) {
  pid_t p = fork();
  if (p == 0) {
    prctl(PR_SET_NAME, "tty-helper");
    raise(SIGSTOP);
    _exit(0);
  }
  nap(20);
  pthread_t t;
  pthread_create(&t, 0, continuer, (void *)(long)p);
  wait_for_stopped_child(p);
  sink++;
}
void smallstack(void) {
  pthread_attr_t a;
  pthread_attr_init(&a);
  pthread_attr_setstacksize(&a, atoi(getenv("BH_STACK")) * 1024);
  printf("default stack %d\n", pthread_setattr_default_np(&a));
}
NOINLINE void plain_nap_inner(void) {
  nap(600);
  sink++;
}
void plainnap(void) {
  plain_nap_inner();
  sink++;
}
NOINLINE void plain_spin_inner(void) {
  SPIN(600);
  sink++;
}
void plainspin(void) {
  plain_spin_inner();
  sink++;
}
NOINLINE void long_nap_inner(void) {
  nap(3000);
  sink++;
}
void longnap(void) {
  long_nap_inner();
  sink++;
}
