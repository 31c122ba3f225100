#pragma once

#include <stdbool.h>
#include <stdint.h>

/// Opens a UDP port of the loopback interface that never answers; returns it, or 0.
uint16_t silent_server_open(void);

/// Makes the calling thread's next getaddrinfo(3) ask that port once, and wait for some seconds; returns whether it will.
bool silent_server_use(uint16_t port, int32_t seconds);

/// Makes the calling thread ask the machine's own name servers again.
void silent_server_leave(void);
