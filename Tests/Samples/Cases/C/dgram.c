#include <sys/socket.h>
#include <sys/un.h>

#include "common.h"
static struct sockaddr_un to = {AF_UNIX, ""};
static void start_logger(void) {
  snprintf(to.sun_path, sizeof to.sun_path, "%s", getenv("BH_SOCK"));
  unlink(to.sun_path);
  int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (bind(s, (void *)&to, sizeof to)) perror("bind");
  int p[2];
  pipe(p);
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_NAME, "slow-logger");
    close(p[0]);
    close(p[1]);
    nap(800);
    char b[5000];
    struct timeval tv = {0, 300000};
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
    while (recv(s, b, sizeof b, 0) > 0) {
    }
    _exit(0);
  }
  close(p[1]);
  char c;
  read(p[0], &c, 1);
  close(p[0]);
  close(s);
  printf("logger is process %d\n", child);
}
NOINLINE void log_unconnected(int fd) {
  for (int i = 0; i < 2000; i++) {
    if (sendto(fd, "hello", 5, 0, (void *)&to, sizeof to) < 0) {
      perror("sendto");
      break;
    }
    if (i > 600) break;
  }
  sink++;
}
NOINLINE void log_connected(int fd) {
  for (int i = 0; i < 602; i++)
    if (send(fd, "hello", 5, 0) < 0) {
      perror("send");
      break;
    }
  sink++;
}
void unconnected(void) {
  start_logger();
  log_unconnected(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}
void connected(void) {
  start_logger();
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (connect(fd, (void *)&to, sizeof to)) perror("connect");
  log_connected(fd);
}
