#include <arpa/inet.h>
#include <netinet/in.h>
#include <resolv.h>

#include "CDemo.h"

// glibc keeps the resolver's state per thread (`_res`, resolver(3)), and getaddrinfo(3) uses it.

bool demo_use_name_server(uint16_t port) {
  if (res_init() != 0) return false;
  struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(port)};
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  _res.nscount = 1;
  _res.nsaddr_list[0] = server;
  // The timeout in seconds, and the number of attempts.
  _res.retrans = 1;
  _res.retry = 1;
  return true;
}

void demo_use_own_name_servers(void) { res_init(); }
