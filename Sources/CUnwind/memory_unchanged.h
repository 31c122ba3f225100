// Bytes of this process's memory by which it is seen, with one system call, that nothing has changed.

#ifndef CUNWIND_WITNESSES_H
#define CUNWIND_WITNESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/// Bytes of one witness at most.
#define CUNWIND_MEMORY_RECORD_BYTES 64u

typedef struct cunwind_memory_record {
  struct iovec *pieces;  ///< Where they are in memory.
  uint8_t *expected;     ///< What was there, one after another.
  uint8_t *present;      ///< Room for what is there now.
  size_t count, capacity, bytes;
  bool is_complete;  ///< All that was to be witnessed is.
} cunwind_memory_record;

#pragma GCC visibility push(hidden)

/// Makes room for `capacity` of them; it costs memory only as it is used. False with errno. Async-signal-safe: no.
bool cunwind_memory_record_init(cunwind_memory_record *record, size_t capacity);
void cunwind_memory_record_destroy(cunwind_memory_record *record);

/// Forgets all. Async-signal-safe: yes.
void cunwind_memory_record_clear(cunwind_memory_record *record);

/// Adds the bytes at `address`, CUNWIND_MEMORY_RECORD_BYTES of them at most. What cannot be read or has no room leaves the
/// record incomplete, so that they never hold. Async-signal-safe: yes.
void cunwind_memory_record_add(cunwind_memory_record *record, uint64_t address, size_t length);

/// Whether there are record, they are complete and every byte is what it was. One system call for each 512 of them.
/// Async-signal-safe: yes.
bool cunwind_memory_record_hold(const cunwind_memory_record *record);

#pragma GCC visibility pop

#endif
