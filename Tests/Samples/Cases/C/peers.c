#include <sys/socket.h>
#include <sys/un.h>

#include "common.h"
// Starts a child of that name that does `work`, and returns once `work` has closed its argument.
static void start_child(const char *name, void (*work)(int ready)) {
  int p[2];
  pipe(p);
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_NAME, name);
    close(p[0]);
    work(p[1]);
    _exit(0);
  }
  close(p[1]);
  char c;
  read(p[0], &c, 1);
  close(p[0]);
  printf("%s is process %d\n", name, child);
}
// BH_SOCK: where the logger listens.
static struct sockaddr_un to = {AF_UNIX, ""};
static int bound;
static void read_late(int ready) {
  close(ready);
  nap(800);
  char b[5000];
  struct timeval tv = {0, 300000};
  setsockopt(bound, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
  while (recv(bound, b, sizeof b, 0) > 0) {
  }
}
static int start_logger(void) {
  snprintf(to.sun_path, sizeof to.sun_path, "%s", getenv("BH_SOCK"));
  unlink(to.sun_path);
  bound = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (bind(bound, (void *)&to, sizeof to)) perror("bind");
  start_child("slow-logger", read_late);
  close(bound);
  return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}
NOINLINE void log_unconnected(int fd) {
  for (int i = 0; i < 602; i++)
    if (sendto(fd, "hello", 5, 0, (void *)&to, sizeof to) < 0) {
      perror("sendto");
      break;
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
void unconnected(void) { log_unconnected(start_logger()); }
void connected(void) {
  int fd = start_logger();
  if (connect(fd, (void *)&to, sizeof to)) perror("connect");
  log_connected(fd);
}
// BH_FILE: the file that the server has leased.
static const char *path;
static void keep_lease(int ready) {
  signal(SIGIO, SIG_IGN);
  int f = open(path, O_RDWR);
  if (fcntl(f, F_SETLEASE, F_WRLCK)) perror("lease");
  close(ready);
  nap(700);
  fcntl(f, F_SETLEASE, F_UNLCK);
  nap(300);
}
NOINLINE void open_the_shared_document(void) {
  int fd = open(path, O_RDWR);
  sink++;
  close(fd);
}
void leased(void) {
  path = getenv("BH_FILE");
  close(open(path, O_CREAT | O_RDWR, 0600));
  start_child("file-server", keep_lease);
  open_the_shared_document();
  sink++;
}
