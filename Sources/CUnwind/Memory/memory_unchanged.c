#define _GNU_SOURCE
#include "Memory/memory_unchanged.h"

#include <string.h>
#include <sys/mman.h>

#include "Memory/guarded_memory.h"

/// The pieces in one call: half of the maximum (UIO_MAXIOV). The kernel keeps up to 8 pieces on its stack; any larger
/// number costs one allocation.
#define PIECES_PER_CALL 512u

static void *reserve(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

bool cunwind_memory_record_init(cunwind_memory_record *record, size_t capacity) {
  memset(record, 0, sizeof *record);
  record->capacity = capacity;
  record->pieces = reserve(capacity * sizeof *record->pieces);
  record->expected = reserve(capacity * CUNWIND_MEMORY_RECORD_BYTES);
  record->present = reserve(capacity * CUNWIND_MEMORY_RECORD_BYTES);
  return record->pieces && record->expected && record->present;
}

void cunwind_memory_record_destroy(cunwind_memory_record *record) {
  if (record->pieces) munmap(record->pieces, record->capacity * sizeof *record->pieces);
  if (record->expected) munmap(record->expected, record->capacity * CUNWIND_MEMORY_RECORD_BYTES);
  if (record->present) munmap(record->present, record->capacity * CUNWIND_MEMORY_RECORD_BYTES);
  memset(record, 0, sizeof *record);
}

void cunwind_memory_record_clear(cunwind_memory_record *record) {
  record->count = record->bytes = 0;
  record->is_complete = true;
}

void cunwind_memory_record_add(cunwind_memory_record *record, uint64_t address, size_t length) {
  if (length > CUNWIND_MEMORY_RECORD_BYTES) length = CUNWIND_MEMORY_RECORD_BYTES;
  if (record->count == record->capacity ||
      cunwind_guarded_read(address, record->expected + record->bytes, length) != length) {
    record->is_complete = false;
    return;
  }
  struct iovec *piece = &record->pieces[record->count++];
  piece->iov_base = (void *)(uintptr_t)address;
  piece->iov_len = length;
  record->bytes += length;
}

bool cunwind_memory_record_hold(const cunwind_memory_record *record) {
  if (!record->is_complete || record->count == 0) return false;
  size_t done = 0;
  for (size_t first = 0; first < record->count; first += PIECES_PER_CALL) {
    size_t count = record->count - first < PIECES_PER_CALL ? record->count - first : PIECES_PER_CALL;
    size_t bytes = 0;
    for (size_t index = first; index < first + count; index++) bytes += record->pieces[index].iov_len;
    if (!cunwind_guarded_gather(record->pieces + first, count, record->present + done, bytes)) return false;
    done += bytes;
  }
  return memcmp(record->expected, record->present, record->bytes) == 0;
}
