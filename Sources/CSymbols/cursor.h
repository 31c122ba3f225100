// Reads a section's bytes one after another, and nothing outside them.

#ifndef CSYMBOLS_CURSOR_H
#define CSYMBOLS_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/// A section's bytes. NULL, 0 when there is none.
typedef struct csymbols_bytes {
  const uint8_t *start;
  size_t size;
} csymbols_bytes;

/// Where reading goes on. Once it has met the end, or what is not known, nothing that is read means anything.
typedef struct csymbols_cursor {
  const uint8_t *at, *end;
  bool is_wide;  ///< 64-bit DWARF.
  bool has_failed;
} csymbols_cursor;

/// An unsigned number of `size` bytes, 8 at most.
static inline uint64_t csymbols_read_fixed(csymbols_cursor *from, size_t size) {
  uint64_t value = 0;
  if ((size_t)(from->end - from->at) < size) {
    from->has_failed = true;
    return 0;
  }
  memcpy(&value, from->at, size);  // Little-endian, as both machines are.
  from->at += size;
  return value;
}

static inline uint64_t csymbols_read_offset(csymbols_cursor *from) {
  return csymbols_read_fixed(from, from->is_wide ? 8 : 4);
}

static inline uint64_t csymbols_read_leb128(csymbols_cursor *from) {
  uint64_t value = 0;
  for (unsigned shift = 0; from->at < from->end; shift += 7) {
    uint8_t byte = *from->at++;
    if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  from->has_failed = true;
  return 0;
}

static inline void csymbols_skip(csymbols_cursor *from, uint64_t size) {
  if ((uint64_t)(from->end - from->at) < size) from->has_failed = true;
  else from->at += size;
}

/// Length of the string there, which is stepped over.
static inline uint64_t csymbols_read_string(csymbols_cursor *from) {
  const uint8_t *end = memchr(from->at, 0, (size_t)(from->end - from->at));
  if (!end) {
    from->has_failed = true;
    return 0;
  }
  uint64_t length = (uint64_t)(end - from->at);
  from->at = end + 1;
  return length;
}

#endif
