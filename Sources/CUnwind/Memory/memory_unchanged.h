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
  struct iovec *pieces;  ///< The addresses and lengths of the pieces.
  uint8_t *expected;     ///< The recorded bytes, one piece after another.
  uint8_t *present;      ///< A buffer for the current bytes.
  size_t count, capacity, bytes;
  bool is_complete;  ///< The record contains every piece that was added.
} cunwind_memory_record;

#pragma GCC visibility push(hidden)

/// Reserves room for `capacity` pieces, which costs memory only when used. False with errno on failure.
/// Async-signal-safe: no.
bool cunwind_memory_record_init(cunwind_memory_record *record, size_t capacity);
void cunwind_memory_record_destroy(cunwind_memory_record *record);

/// Removes all pieces. Async-signal-safe: yes.
void cunwind_memory_record_clear(cunwind_memory_record *record);

/// Adds the bytes at `address`, at most CUNWIND_MEMORY_RECORD_BYTES. If the piece cannot be read, or there is no room,
/// the record becomes incomplete and never counts as unchanged. Async-signal-safe: yes.
void cunwind_memory_record_add(cunwind_memory_record *record, uint64_t address, size_t length);

/// Returns whether the record is complete, not empty, and all bytes are unchanged. Makes one system call per 512
/// pieces. Async-signal-safe: yes.
bool cunwind_memory_record_hold(const cunwind_memory_record *record);

#pragma GCC visibility pop

#endif
