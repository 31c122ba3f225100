#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <resolv.h>
#include <sys/socket.h>
#include <unistd.h>

#include "CSilentServer.h"

uint16_t silent_server_open(void) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  int server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (bind(server, (struct sockaddr *)&address, length) == 0 &&
      getsockname(server, (struct sockaddr *)&address, &length) == 0)
    return ntohs(address.sin_port);
  close(server);
  return 0;
}

bool silent_server_use(uint16_t port, int32_t seconds) {
  // glibc keeps the resolver's state per thread (resolver(3)), and getaddrinfo(3) uses it.
  if (res_init() != 0) return false;
  struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(port)};
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  _res.nscount = 1;
  _res.nsaddr_list[0] = server;
  _res.retrans = seconds;
  _res.retry = 1;
  return true;
}

void silent_server_leave(void) { res_init(); }
