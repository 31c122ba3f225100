// Preloaded into a server that can only listen on all addresses, makes it listen on the loopback address.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

int bind(int socket, const struct sockaddr *address, socklen_t length) {
  int (*next)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "bind");
  if (!next) {
    errno = ENOSYS;
    return -1;
  }
  struct sockaddr_storage own = {0};
  if (!address || length > sizeof own) return next(socket, address, length);
  memcpy(&own, address, length);
  if (own.ss_family == AF_INET) ((struct sockaddr_in *)&own)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (own.ss_family == AF_INET6) {
    // ::ffff:127.0.0.1: a dual-stack socket then accepts IPv4 connections to the loopback address.
    static const struct in6_addr mapped = {{{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}}};
    ((struct sockaddr_in6 *)&own)->sin6_addr = mapped;
  }
  return next(socket, (const struct sockaddr *)&own, length);
}
