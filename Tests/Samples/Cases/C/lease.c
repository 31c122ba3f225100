#include "common.h"
NOINLINE void open_the_shared_document(const char *p) {
  int fd = open(p, O_RDWR);
  sink++;
  close(fd);
}
void run(void) {
  const char *path = getenv("BH_FILE");
  int fd = open(path, O_CREAT | O_RDWR, 0600);
  close(fd);
  int p[2];
  pipe(p);
  pid_t c = fork();
  if (c == 0) {
    prctl(PR_SET_NAME, "file-server");
    signal(SIGIO, SIG_IGN);
    int f = open(path, O_RDWR);
    if (fcntl(f, F_SETLEASE, F_WRLCK)) perror("lease");
    write(p[1], "x", 1);
    nap(700);
    fcntl(f, F_SETLEASE, F_UNLCK);
    nap(300);
    _exit(0);
  }
  char b;
  read(p[0], &b, 1);
  close(p[0]);
  close(p[1]);
  printf("holder is process %d\n", c);
  open_the_shared_document(path);
  sink++;
}
