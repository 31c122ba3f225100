#define _GNU_SOURCE
#include <string.h>

#include "Unwinding/cfi.h"

/// The most bytes of an augmentation string that are kept. Compilers write "zPLR", "zRS" and the like.
#define AUGMENTATION_BYTES 8u
/// The most bytes of an entry, which bounds a step's time. Functions with thousands of calls have some thousands.
#define MAX_ENTRY_BYTES (64u * 1024)
/// Compilers write version 1 to .eh_frame; version 3 differs only in the encoding of the return register. Version 4, of
/// .debug_frame, also has the sizes of an address and of a segment's name, in a byte each: 8 and 0.
enum { VERSION_1 = 1, VERSION_3 = 3, VERSION_4 = 4, SIZES = 8 };
enum { ENCODING_OMIT = 0xff, ENCODING_FORM = 0x0f, ENCODING_BASE = 0x70, BASE_PC = 0x10, ENCODING_INDIRECT = 0x80 };

uint64_t cunwind_read_fixed(cunwind_bytes *from, unsigned size) {
  uint64_t value = 0;
  if (from->has_failed || from->end - from->at < size || from->at > from->end ||
      !cunwind_page_cache_read(from->pages, from->at, &value, size)) {
    from->has_failed = true;
    return 0;
  }
  from->at += size;
  return value;
}

int64_t cunwind_read_signed(cunwind_bytes *from, unsigned size) {
  unsigned unused = 64 - 8 * size;
  return (int64_t)(cunwind_read_fixed(from, size) << unused) >> unused;
}

static uint64_t read_leb128(cunwind_bytes *from, bool is_signed) {
  uint64_t value = 0;
  for (unsigned shift = 0; !from->has_failed; shift += 7) {
    uint64_t byte = cunwind_read_fixed(from, 1);
    if (shift < 64) value |= (byte & 0x7f) << shift;
    if (byte >= 0x80) continue;
    if (is_signed && (byte & 0x40) && shift + 7 < 64) value |= ~0ull << (shift + 7);
    return value;
  }
  return 0;
}

uint64_t cunwind_read_uleb128(cunwind_bytes *from) { return read_leb128(from, false); }

int64_t cunwind_read_sleb128(cunwind_bytes *from) { return (int64_t)read_leb128(from, true); }

uint64_t cunwind_read_encoded(cunwind_bytes *from, uint8_t encoding) {
  // The sizes by form; 0: it is unknown. Form 0 has the size of an address, and those from 8 on have a sign.
  enum { VARIABLE = 1 };
  static const uint8_t sizes[ENCODING_FORM + 1] = {8, VARIABLE, 2, 4, 8, 0, 0, 0, 0, VARIABLE, 2, 4, 8};
  uint8_t form = encoding & ENCODING_FORM, base = encoding & ENCODING_BASE;
  uint64_t place = from->at, value = 0;
  if (sizes[form] == 0) from->has_failed = true;
  else if (sizes[form] == VARIABLE)
    value = form < 8 ? cunwind_read_uleb128(from) : (uint64_t)cunwind_read_sleb128(from);
  else value = form < 8 ? cunwind_read_fixed(from, sizes[form]) : (uint64_t)cunwind_read_signed(from, sizes[form]);
  if (base == BASE_PC) value += place;
  else if (base != 0) from->has_failed = true;
  // An indirect address points to data of the linker. No address that is needed here is indirect.
  if (encoding & ENCODING_INDIRECT) value = 0;
  return value;
}

// Finds the table's entry with the greatest start not above `pc`: the start, and the address in .eh_frame. False: there
// is none.
static bool search_table(const cunwind_module *module, cunwind_page_cache *pages, uint64_t pc, uint64_t *start,
                         uint64_t *address) {
  uint64_t low = 0, high = module->table_count;
  int32_t entry[2] = {0, 0};
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (!cunwind_page_cache_read(pages, module->table + middle * sizeof entry, entry, sizeof entry)) return false;
    if (module->table_base + (uint64_t)(int64_t)entry[0] <= pc) low = middle + 1;
    else high = middle;
  }
  if (low == 0) return false;
  if (!cunwind_page_cache_read(pages, module->table + (low - 1) * sizeof entry, entry, sizeof entry)) return false;
  *start = module->table_base + (uint64_t)(int64_t)entry[0];
  *address = module->table_base + (uint64_t)(int64_t)entry[1];
  return true;
}

uint64_t cunwind_start_before(const cunwind_modules *modules, cunwind_page_cache *pages, uint64_t pc) {
  const cunwind_module *module = cunwind_module_of_code(modules, pc);
  uint64_t start, address;
  return module && search_table(module, pages, pc, &start, &address) ? start : 0;
}

// Reads an entry's length and finds its end. Nothing writes to the entries, also where their segment is writable.
static bool open_entry(cunwind_bytes *bytes, const cunwind_entries *entries, cunwind_page_cache *pages,
                       uint64_t address) {
  if (address < entries->low || address >= entries->high) return false;
  *bytes = (cunwind_bytes){.pages = pages, .at = address, .end = entries->high};
  uint64_t length = cunwind_read_fixed(bytes, 4);
  if (bytes->has_failed || length == 0 || length > MAX_ENTRY_BYTES || length > bytes->end - bytes->at) return false;
  bytes->end = bytes->at + length;
  return true;
}

static bool read_augmentation(cunwind_bytes *bytes, const char *letters, cunwind_function *function) {
  uint64_t size = cunwind_read_uleb128(bytes), data = bytes->at;
  if (bytes->has_failed || size > bytes->end - bytes->at) return false;
  for (const char *letter = letters + 1; *letter; letter++) {
    if (*letter == 'R') function->address_encoding = (uint8_t)cunwind_read_fixed(bytes, 1);
    else if (*letter == 'L') cunwind_read_fixed(bytes, 1);
    else if (*letter == 'P') cunwind_read_encoded(bytes, (uint8_t)(cunwind_read_fixed(bytes, 1) & ~ENCODING_INDIRECT));
    else if (*letter == 'S') function->is_signal_frame = true;
    // 'B': return addresses are signed with the other key (aarch64); 'G': memory tags. Neither changes the rules.
    else if (*letter != 'B' && *letter != 'G') break;
  }
  bytes->at = data + size;
  return !bytes->has_failed;
}

// Reads a common information entry. `*has_data`: the entries that refer to it have augmentation data with a length.
static bool read_common(const cunwind_entries *entries, cunwind_page_cache *pages, uint64_t address,
                        cunwind_function *function, bool *has_data) {
  cunwind_bytes bytes;
  if (!open_entry(&bytes, entries, pages, address)) return false;
  if (cunwind_read_fixed(&bytes, 4) != (entries->is_debug_frame ? UINT32_MAX : 0)) return false;
  uint64_t version = cunwind_read_fixed(&bytes, 1);
  if (version != VERSION_1 && version != VERSION_3 && (version != VERSION_4 || !entries->is_debug_frame)) return false;
  char letters[AUGMENTATION_BYTES + 1] = {0};
  for (unsigned index = 0;; index++) {
    char letter = (char)cunwind_read_fixed(&bytes, 1);
    if (bytes.has_failed || index == AUGMENTATION_BYTES) return false;
    letters[index] = letter;
    if (letter == 0) break;
  }
  if (version == VERSION_4 && cunwind_read_fixed(&bytes, 2) != SIZES) return false;
  function->code_alignment = cunwind_read_uleb128(&bytes);
  function->data_alignment = cunwind_read_sleb128(&bytes);
  function->return_register = version == VERSION_1 ? cunwind_read_fixed(&bytes, 1) : cunwind_read_uleb128(&bytes);
  // In .debug_frame only old compilers write letters, each with its own meaning.
  if (bytes.has_failed || (letters[0] != 0 && (letters[0] != 'z' || entries->is_debug_frame))) return false;
  *has_data = letters[0] == 'z';
  if (*has_data && !read_augmentation(&bytes, letters, function)) return false;
  function->initial = bytes.at;
  function->initial_end = bytes.end;
  return true;
}

// Reads the entry of a function at `address`. False: it does not contain `pc`, or is damaged.
static bool read_entry(const cunwind_entries *entries, cunwind_page_cache *pages, uint64_t address, uint64_t pc,
                       cunwind_function *function) {
  cunwind_bytes bytes;
  if (!open_entry(&bytes, entries, pages, address)) return false;
  memset(function, 0, sizeof *function);
  bool has_data;
  uint64_t place = bytes.at, distance = cunwind_read_fixed(&bytes, 4);
  uint64_t common = entries->is_debug_frame ? entries->low + distance : place - distance;
  if (!entries->is_debug_frame && (distance == 0 || distance > place)) return false;
  if (!read_common(entries, pages, common, function, &has_data)) return false;
  if (function->address_encoding == ENCODING_OMIT) return false;
  function->entries = *entries;
  function->start = entries->bias + cunwind_read_encoded(&bytes, function->address_encoding);
  // The range has the encoding of the address, but is never relative.
  function->end = function->start + cunwind_read_encoded(&bytes, function->address_encoding & ENCODING_FORM);
  if (has_data) {
    uint64_t size = cunwind_read_uleb128(&bytes);
    if (size > bytes.end - bytes.at) return false;
    bytes.at += size;
  }
  function->instructions = bytes.at;
  function->instructions_end = bytes.end;
  return !bytes.has_failed && pc >= function->start && pc < function->end;
}

bool cunwind_find_function(const cunwind_modules *modules, cunwind_page_cache *pages, uint64_t pc,
                           cunwind_function *function) {
  const cunwind_module *module = cunwind_module_of_code(modules, pc);
  if (!module) return false;
  cunwind_entries entries = {.low = module->image.low, .high = module->image.high};
  uint64_t start, entry;
  if (search_table(module, pages, pc, &start, &entry) && read_entry(&entries, pages, entry, pc, function)) return true;
  entry = cunwind_search_debug_frame(module, pc, &entries);
  return entry != 0 && read_entry(&entries, pages, entry, pc, function);
}
