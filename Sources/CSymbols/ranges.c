// Which of many address ranges is an address in?

#include <stdlib.h>

#include "image.h"

// The debug information of a function that the linker left out stays behind, with 0 as its address (or 1 in
// .debug_ranges, where a pair of zeros would end the list: lld's and GNU ld's rule). No code can be there: an ELF file's
// first bytes are its header.
#define LAST_TOMBSTONE 1u

uint64_t csymbols_image_bytes(const csymbols_image *image) {
  return image->copy.length + image->copy.unpacked_bytes + image->line_bytes + image->table_bytes;
}

csymbols_status csymbols_keep_range(csymbols_image *image, csymbols_ranges *ranges, uint64_t low, uint64_t high,
                                    uint64_t owner) {
  bool is_code = high > low && low > LAST_TOMBSTONE;
  if (is_code && ranges->count == ranges->capacity) {
    size_t capacity = ranges->capacity ? ranges->capacity * 2 : 64;
    csymbols_range *list = reallocarray(ranges->list, capacity, sizeof *list);
    if (!list) return CSYMBOLS_NO_MEMORY;
    image->table_bytes += (capacity - ranges->capacity) * sizeof *list;
    ranges->list = list;
    ranges->capacity = capacity;
  }
  if (is_code) ranges->list[ranges->count++] = (csymbols_range){.low = low, .high = high, .owner = owner};
  return csymbols_image_bytes(image) > image->maximum_bytes ? CSYMBOLS_TOO_LARGE : CSYMBOLS_OK;
}

// Of ranges that begin together the shorter one comes last, so that it is found first.
static int compare(const void *left, const void *right) {
  const csymbols_range *a = left, *b = right;
  if (a->low != b->low) return a->low < b->low ? -1 : 1;
  if (a->high != b->high) return a->high > b->high ? -1 : 1;
  return a->owner < b->owner ? -1 : a->owner > b->owner;
}

void csymbols_ranges_sort(csymbols_ranges *ranges) {
  if (ranges->count == 0) return;
  qsort(ranges->list, ranges->count, sizeof *ranges->list, compare);
  uint64_t reach = 0;
  for (size_t index = 0; index < ranges->count; index++) {
    if (ranges->list[index].high > reach) reach = ranges->list[index].high;
    ranges->list[index].reach = reach;
  }
}

const csymbols_range *csymbols_ranges_find(const csymbols_ranges *ranges, uint64_t address) {
  size_t low = 0, high = ranges->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (ranges->list[middle].low <= address) low = middle + 1;
    else high = middle;
  }
  for (unsigned looked = 0; low > 0 && looked < CSYMBOLS_MAX_OVERLAPS; looked++) {
    const csymbols_range *range = &ranges->list[--low];
    if (address < range->high) return range;
    if (address >= range->reach) return NULL;
  }
  return NULL;
}

void csymbols_drop_ranges(csymbols_image *image, csymbols_ranges *ranges) {
  image->table_bytes -= ranges->capacity * sizeof(csymbols_range);
  free(ranges->list);
  *ranges = (csymbols_ranges){0};
}
