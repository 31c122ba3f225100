#define _GNU_SOURCE
#include "witnesses.h"

#include <string.h>
#include <sys/mman.h>

#include "guarded_memory.h"

/// Half of what one call takes (UIO_MAXIOV): the kernel keeps a list of up to 8 pieces on its stack, beyond that any
/// number costs one allocation.
#define PIECES_PER_CALL 512u

static void *reserve(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

bool cunwind_witnesses_init(cunwind_witnesses *witnesses, size_t capacity) {
  memset(witnesses, 0, sizeof *witnesses);
  witnesses->capacity = capacity;
  witnesses->pieces = reserve(capacity * sizeof *witnesses->pieces);
  witnesses->expected = reserve(capacity * CUNWIND_WITNESS_BYTES);
  witnesses->present = reserve(capacity * CUNWIND_WITNESS_BYTES);
  return witnesses->pieces && witnesses->expected && witnesses->present;
}

void cunwind_witnesses_destroy(cunwind_witnesses *witnesses) {
  if (witnesses->pieces) munmap(witnesses->pieces, witnesses->capacity * sizeof *witnesses->pieces);
  if (witnesses->expected) munmap(witnesses->expected, witnesses->capacity * CUNWIND_WITNESS_BYTES);
  if (witnesses->present) munmap(witnesses->present, witnesses->capacity * CUNWIND_WITNESS_BYTES);
  memset(witnesses, 0, sizeof *witnesses);
}

void cunwind_witnesses_clear(cunwind_witnesses *witnesses) {
  witnesses->count = witnesses->bytes = 0;
  witnesses->is_complete = true;
}

void cunwind_witnesses_add(cunwind_witnesses *witnesses, uint64_t address, size_t length) {
  if (length > CUNWIND_WITNESS_BYTES) length = CUNWIND_WITNESS_BYTES;
  if (witnesses->count == witnesses->capacity ||
      cunwind_guarded_read(address, witnesses->expected + witnesses->bytes, length) != length) {
    witnesses->is_complete = false;
    return;
  }
  struct iovec *piece = &witnesses->pieces[witnesses->count++];
  piece->iov_base = (void *)(uintptr_t)address;
  piece->iov_len = length;
  witnesses->bytes += length;
}

bool cunwind_witnesses_hold(const cunwind_witnesses *witnesses) {
  if (!witnesses->is_complete || witnesses->count == 0) return false;
  size_t done = 0;
  for (size_t first = 0; first < witnesses->count; first += PIECES_PER_CALL) {
    size_t count = witnesses->count - first < PIECES_PER_CALL ? witnesses->count - first : PIECES_PER_CALL;
    size_t bytes = 0;
    for (size_t index = first; index < first + count; index++) bytes += witnesses->pieces[index].iov_len;
    if (!cunwind_guarded_gather(witnesses->pieces + first, count, witnesses->present + done, bytes)) return false;
    done += bytes;
  }
  return memcmp(witnesses->expected, witnesses->present, witnesses->bytes) == 0;
}
