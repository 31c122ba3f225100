// A record of bytes in this process's memory: one system call shows whether any of them has changed.

#ifndef CUNWIND_MEMORY_UNCHANGED_H
#define CUNWIND_MEMORY_UNCHANGED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/// The most bytes of one piece.
#define CUNWIND_MEMORY_RECORD_BYTES 64u

typedef struct cunwind_memory_record {
  struct iovec *pieces;  ///< The pieces' places in memory.
  uint8_t *expected;     ///< The recorded bytes, one piece after another.
  uint8_t *present;      ///< Room for the bytes that are there now.
  size_t count, capacity, bytes;
  bool is_complete;  ///< Every piece that was added is in the record.
} cunwind_memory_record;

#pragma GCC visibility push(hidden)

/// Makes room for `capacity` pieces; it costs memory only as it is used. False with errno. Async-signal-safe: no.
bool cunwind_memory_record_init(cunwind_memory_record *record, size_t capacity);
void cunwind_memory_record_destroy(cunwind_memory_record *record);

/// Removes all pieces. Async-signal-safe: yes.
void cunwind_memory_record_clear(cunwind_memory_record *record);

/// Adds the bytes at `address`, CUNWIND_MEMORY_RECORD_BYTES of them at most. A piece that cannot be read, or has no room,
/// leaves the record incomplete, so that it never holds. Async-signal-safe: yes.
void cunwind_memory_record_add(cunwind_memory_record *record, uint64_t address, size_t length);

/// Whether the record is complete, not empty, and every byte is unchanged. One system call for each 512 pieces.
/// Async-signal-safe: yes.
bool cunwind_memory_record_hold(const cunwind_memory_record *record);

#pragma GCC visibility pop

#endif
