// dl_iterate_phdr(3) takes the linker's lock, which the stalled thread may hold: in a callback of that same function,
// or in a dlopen that does not end. So this code reads the list as a debugger does (<link.h>, "rendezvous structure"):
// from `_r_debug`, which has one list for each namespace of dlmopen(3), along the links. Every read is guarded: another
// thread may free an entry.

#define _GNU_SOURCE
#include "Memory/modules.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "Memory/guarded_memory.h"

/// The most images that a walk visits. It ends the walk if another thread damages the list meanwhile.
#define MAX_LINKED_IMAGES 16384u
/// The most namespaces of the linker that are read: glibc has 16 (DL_NNS).
#define MAX_NAMESPACES 16u
/// The most segments that are not writable of which an image's hash is made. Linkers make one to three.
#define HASHED_SEGMENTS 4u

// ---- The record of bytes ---------------------------------------------------------------------------------------------
// Apart from its beginning and its end, all of it is async-signal-safe.

#define PIECE_BYTES 64u
/// Half of the maximum (UIO_MAXIOV). The kernel keeps 8 pieces on its stack; any larger number costs one allocation.
#define PIECES_PER_CALL 512u

// Reserves room for `capacity` pieces, PIECE_BYTES on average, which costs memory only when used. False with errno on
// failure.
static bool init_record(cunwind_memory_record *record, size_t capacity) {
  memset(record, 0, sizeof *record);
  record->capacity = capacity;
  record->pieces = cunwind_map(capacity * sizeof *record->pieces, MAP_NORESERVE);
  record->expected = cunwind_map(capacity * PIECE_BYTES, MAP_NORESERVE);
  record->present = cunwind_map(capacity * PIECE_BYTES, MAP_NORESERVE);
  return record->pieces && record->expected && record->present;
}

static void clear_record(cunwind_memory_record *record) {
  record->count = record->bytes = 0;
  record->is_complete = true;
}

// Adds the bytes at `address`. Unreadable or without room: the record never counts as unchanged.
static void add_piece(cunwind_memory_record *record, uint64_t address, size_t length) {
  if (record->count == record->capacity || record->bytes + length > record->capacity * PIECE_BYTES ||
      !cunwind_guarded_read_all(address, record->expected + record->bytes, length)) {
    record->is_complete = false;
    return;
  }
  struct iovec *piece = &record->pieces[record->count++];
  piece->iov_base = (void *)(uintptr_t)address;
  piece->iov_len = length;
  record->bytes += length;
}

// Returns whether the record is complete, not empty, and all bytes are unchanged. Makes one system call per 512 pieces.
static bool is_unchanged(const cunwind_memory_record *record) {
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

// ---- The list -------------------------------------------------------------------------------------------------------
// The list of images. A record of the linker's entries and the images' build IDs shows whether the list is out of date.

// .eh_frame_hdr (LSB core, "Exception Frames"): version 1, a 4-byte pointer to .eh_frame, a 4-byte count, and a table
// of 4-byte offsets relative to the section. Every linker writes exactly this.
enum { EH_VERSION = 1, EH_COUNT_UDATA4 = 0x03, EH_TABLE_DATAREL_SDATA4 = 0x3b, EH_SIZE_MASK = 0x0f, EH_SDATA4 = 0x0b };

// The most walks if another thread changes the list. A walk takes about 0.2 ms, a change some microseconds.
enum { MAX_WALKS = 3 };

bool cunwind_modules_init(cunwind_modules *modules) {
  memset(modules, 0, sizeof *modules);
  ssize_t length = readlink("/proc/self/exe", modules->executable_path, sizeof modules->executable_path - 1);
  modules->executable_path[length > 0 ? length : 0] = 0;
  // The link leads to the dynamic linker if that was started with the executable's path: the path is not known here.
  const char *name = strrchr(modules->executable_path, '/');
  if (name && strncmp(name, "/ld", 3) == 0) modules->executable_path[0] = 0;
  modules->list = cunwind_map(CUNWIND_MAX_IMAGES * sizeof(cunwind_module), MAP_NORESERVE);
  modules->paths = cunwind_map(CUNWIND_MAX_PATH_BYTES, MAP_NORESERVE);
  // Two pieces per image, its entry and its build ID, and two per namespace.
  if (!modules->list || !modules->paths || !cunwind_mappings_init(&modules->mappings) ||
      !init_record(&modules->record, 2 * CUNWIND_MAX_IMAGES + 2 * MAX_NAMESPACES))
    return false;
  cunwind_modules_refresh(modules);
  return true;
}

void cunwind_modules_destroy(cunwind_modules *modules) {
  if (modules->list) munmap(modules->list, CUNWIND_MAX_IMAGES * sizeof(cunwind_module));
  if (modules->paths) munmap(modules->paths, CUNWIND_MAX_PATH_BYTES);
  cunwind_mappings_destroy(&modules->mappings);
  cunwind_memory_record *record = &modules->record;
  if (record->pieces) munmap(record->pieces, record->capacity * sizeof *record->pieces);
  if (record->expected) munmap(record->expected, record->capacity * PIECE_BYTES);
  if (record->present) munmap(record->present, record->capacity * PIECE_BYTES);
  memset(modules, 0, sizeof *modules);
}

// The notes of a segment have tens of bytes; that of a build ID has 36 with SHA-1, the linkers' default.
enum { MAX_NOTE_BYTES = 1024, BUILD_ID_NOTE_BYTES = 36 };

// Returns the address of the note, or 0.
static uint64_t read_build_id(cunwind_module *module, uint64_t low, uint64_t size) {
  uint8_t notes[MAX_NOTE_BYTES];
  size_t length = cunwind_guarded_read(low, notes, size < sizeof notes ? (size_t)size : sizeof notes);
  const uint8_t *at = notes, *end = notes + length;
  while (end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    memcpy(&header, at, sizeof header);
    const uint8_t *note = at;
    at += sizeof header;
    uint64_t name_bytes = ((uint64_t)header.n_namesz + 3) & ~3ull, bytes = ((uint64_t)header.n_descsz + 3) & ~3ull;
    if (name_bytes + bytes > (uint64_t)(end - at)) return 0;
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && memcmp(at, "GNU", 4) == 0) {
      size_t kept = header.n_descsz < CUNWIND_MAX_BUILD_ID_BYTES ? header.n_descsz : CUNWIND_MAX_BUILD_ID_BYTES;
      memcpy(module->image.build_id, at + name_bytes, kept);
      module->image.build_id_length = (uint8_t)kept;
      return low + (uint64_t)(note - notes);
    }
    at += name_bytes + bytes;
  }
  return 0;
}

static void read_unwind_table(cunwind_module *module, uint64_t header, uint64_t size) {
  uint8_t bytes[12];
  if (size < sizeof bytes || !cunwind_guarded_read_all(header, bytes, sizeof bytes)) return;
  if (bytes[0] != EH_VERSION || (bytes[1] & EH_SIZE_MASK) != EH_SDATA4 || bytes[2] != EH_COUNT_UDATA4 ||
      bytes[3] != EH_TABLE_DATAREL_SDATA4)
    return;
  uint32_t count;
  memcpy(&count, bytes + 8, sizeof count);
  if (count > (size - 12) / 8) return;
  module->table_base = header;
  module->table = header + 12;
  module->table_count = count;
}

// Returns the hash of an image's contents (cunwind_image); 0 if they cannot be read.
static uint64_t hash_content(const cunwind_linked_image *image) {
  uint64_t hash = 0xcbf29ce484222325ull, words[CUNWIND_HASHED_BYTES / sizeof(uint64_t)];
  for (unsigned index = 0, count = 0; index < image->segment_count && count < HASHED_SEGMENTS; index++) {
    const ElfW(Phdr) *segment = &image->segments[index];
    // strip(1) changes the ELF header.
    uint64_t skipped = segment->p_offset == 0 ? sizeof(ElfW(Ehdr)) : 0, size = segment->p_filesz;
    if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W) || size <= skipped) continue;
    size_t kept = ((size < sizeof words ? (size_t)size : sizeof words) - skipped) / sizeof *words;
    if (!cunwind_guarded_read_all(image->base + segment->p_vaddr + skipped, words, kept * sizeof *words)) return 0;
    for (size_t word = 0; word < kept; word++) hash = (hash ^ words[word]) * 0x100000001b3ull;
    count++;
  }
  return hash;
}

static void widen(uint64_t *low, uint64_t *high, uint64_t start, uint64_t end) {
  if (*high == 0 || start < *low) *low = start;
  if (end > *high) *high = end;
}

// False: the image has no loaded segments.
static bool read_module(cunwind_module *module, const cunwind_linked_image *image, uint64_t *build_id_note) {
  memset(module, 0, sizeof *module);
  module->image.base = image->base;
  for (unsigned index = 0; index < image->segment_count; index++) {
    const ElfW(Phdr) *segment = &image->segments[index];
    uint64_t start = image->base + segment->p_vaddr, end = start + segment->p_memsz;
    if (segment->p_type != PT_LOAD || end < start) continue;
    widen(&module->image.low, &module->image.high, start, end);
    if (segment->p_flags & PF_X) widen(&module->code_low, &module->code_high, start, end);
    if (!(segment->p_flags & PF_W)) widen(&module->fixed_low, &module->fixed_high, start, end);
  }
  if (module->image.high == 0) return false;
  for (unsigned index = 0; index < image->segment_count; index++) {
    const ElfW(Phdr) *segment = &image->segments[index];
    uint64_t start = image->base + segment->p_vaddr, end = start + segment->p_memsz;
    // In a segment of any kind: GNU ld makes Swift's .rodata writable, and with it the segment of .eh_frame.
    if (start < module->image.low || end > module->image.high || end < start) continue;
    if (segment->p_type == PT_GNU_EH_FRAME) read_unwind_table(module, start, segment->p_memsz);
    if (segment->p_type == PT_NOTE && module->image.build_id_length == 0) {
      *build_id_note = read_build_id(module, start, segment->p_memsz);
    }
  }
  if (module->image.build_id_length == 0) module->image.content_hash = hash_content(image);
  return true;
}

static const char *keep_path(cunwind_modules *modules, const cunwind_linked_image *image) {
  char *kept = modules->paths + modules->path_bytes;
  size_t room = CUNWIND_MAX_PATH_BYTES - modules->path_bytes;
  if (room > PATH_MAX) room = PATH_MAX;
  size_t length;
  if (image->is_executable) {
    length = strlen(modules->executable_path);
    if (length >= room) return "";
    memcpy(kept, modules->executable_path, length + 1);
  } else {
    size_t readable = cunwind_guarded_read(image->name, kept, room);
    length = strnlen(kept, readable);
    if (length == readable) return "";  // The path has no end.
  }
  modules->path_bytes += length + 1;
  return kept;
}

// An image without a build ID is known by its first page: the sizes of its segments, its symbols.
static size_t bytes_of_page(uint64_t address) { return CUNWIND_PAGE_BYTES - (size_t)(address % CUNWIND_PAGE_BYTES); }

static void add_image(const cunwind_linked_image *image, cunwind_modules *modules) {
  // Before the image is read, so that the next refresh detects a change in between.
  add_piece(&modules->record, image->entry, sizeof(struct link_map));
  if (modules->count == CUNWIND_MAX_IMAGES) return;
  cunwind_module *module = &modules->list[modules->count];
  uint64_t note = 0;
  if (!read_module(module, image, &note)) return;
  // Another build of a library may be loaded at the same address.
  if (note) add_piece(&modules->record, note, BUILD_ID_NOTE_BYTES);
  else if (module->fixed_high) add_piece(&modules->record, module->fixed_low, bytes_of_page(module->fixed_low));
  module->image.path = keep_path(modules, image);
  // Relative, as of a library that was found by LD_LIBRARY_PATH=. before the program changed its directory.
  if (module->image.path[0] != '/' && strchr(module->image.path, '/')) module->path_at = image->dynamic;
  modules->count++;
}

// Adds each image of a namespace with readable program headers, in the linker's order. False: the list changed during
// the walk, its links no longer matched, and not every image was added.
static bool walk_link_map(cunwind_modules *modules, uint64_t at, bool is_main) {
  uint64_t previous = 0;
  for (unsigned index = 0; at != 0; index++) {
    struct link_map entry;
    if (index == MAX_LINKED_IMAGES || !cunwind_guarded_read_all(at, &entry, sizeof entry)) return false;
    // An entry that was freed or unlinked meanwhile does not point back to the previous one.
    if ((uint64_t)(uintptr_t)entry.l_prev != previous) return false;
    cunwind_linked_image image = {.entry = at,
                                  .base = entry.l_addr,
                                  .name = (uint64_t)(uintptr_t)entry.l_name,
                                  .dynamic = (uint64_t)(uintptr_t)entry.l_ld,
                                  .is_executable = is_main && index == 0};
    if (cunwind_read_segments(&image, &modules->mappings)) add_image(&image, modules);
    previous = at;
    at = (uint64_t)(uintptr_t)entry.l_next;
  }
  return true;
}

/// From version 2 on, which glibc 2.35 sets with the first dlmopen(3), the next namespace's structure follows.
typedef struct linker_namespace {
  struct r_debug own;
  uint64_t next;
} linker_namespace;

// Before glibc 2.35 only the first namespace is shown.
static bool walk_namespaces(cunwind_modules *modules) {
  uint64_t at = (uint64_t)(uintptr_t)&_r_debug;
  for (unsigned index = 0; at != 0 && index < MAX_NAMESPACES; index++) {
    linker_namespace found = {.next = 0};
    // r_version and r_map; r_state changes at each dlopen.
    add_piece(&modules->record, at, offsetof(struct r_debug, r_map) + sizeof found.own.r_map);
    if (!cunwind_guarded_read_all(at, &found.own, sizeof found.own)) return false;
    if (found.own.r_version > 1) {
      uint64_t next = at + offsetof(linker_namespace, next);
      add_piece(&modules->record, next, sizeof found.next);
      if (!cunwind_guarded_read_all(next, &found.next, sizeof found.next)) return false;
    }
    if (!walk_link_map(modules, (uint64_t)(uintptr_t)found.own.r_map, index == 0)) return false;
    at = found.next;
  }
  return true;
}

// The dynamic linker itself is in each namespace's list.
static void remove_doubles(cunwind_modules *modules) {
  size_t kept = 0;
  for (size_t index = 0; index < modules->count; index++) {
    if (kept > 0 && modules->list[kept - 1].image.low == modules->list[index].image.low) continue;
    modules->list[kept++] = modules->list[index];
  }
  modules->count = kept;
}

// Shell sort: sorts in place; qsort(3) would allocate.
static void sort_by_address(cunwind_module *list, size_t count) {
  for (size_t gap = count / 2; gap > 0; gap /= 2) {
    for (size_t index = gap; index < count; index++) {
      cunwind_module moving = list[index];
      size_t hole = index;
      for (; hole >= gap && list[hole - gap].image.low > moving.image.low; hole -= gap) list[hole] = list[hole - gap];
      list[hole] = moving;
    }
  }
}

typedef struct path_search {
  cunwind_modules *modules;
  size_t next;
} path_search;

// The images are sorted, and so are the mappings.
static bool take_path(const cunwind_mapping *mapping, const char *path, size_t length, void *context) {
  path_search *search = context;
  cunwind_modules *modules = search->modules;
  for (; search->next < modules->count; search->next++) {
    cunwind_module *module = &modules->list[search->next];
    if (module->path_at < mapping->low) continue;
    if (module->path_at >= mapping->high) return true;
    if (CUNWIND_MAX_PATH_BYTES - modules->path_bytes <= length) return false;
    char *kept = modules->paths + modules->path_bytes;
    memcpy(kept, path, length);
    kept[length] = 0;
    modules->path_bytes += length + 1;
    module->image.path = kept;
  }
  return false;
}

// Takes the paths of images whose path is relative from their mappings: of all in one reading, as there may be many.
static void find_paths(cunwind_modules *modules) {
  path_search search = {.modules = modules};
  while (search.next < modules->count && modules->list[search.next].path_at == 0) search.next++;
  if (search.next == modules->count) return;
  char path[PATH_MAX];
  cunwind_mapped_paths(&modules->mappings, path, sizeof path, take_path, &search);
}

bool cunwind_modules_refresh(cunwind_modules *modules) {
  if (is_unchanged(&modules->record)) return false;
  bool is_whole = false;
  // Read anew for the first image that needs them.
  modules->mappings.read_at = 0;
  for (int walk = 0; !is_whole && walk < MAX_WALKS; walk++) {
    clear_record(&modules->record);
    modules->count = modules->path_bytes = 0;
    is_whole = walk_namespaces(modules);
  }
  // Keep the partial list; the next refresh rebuilds it.
  if (!is_whole) clear_record(&modules->record);
  modules->generation++;
  sort_by_address(modules->list, modules->count);
  remove_doubles(modules);
  find_paths(modules);
  return true;
}

const cunwind_module *cunwind_module_at(const cunwind_modules *modules, uint64_t address) {
  size_t low = 0, high = modules->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (modules->list[middle].image.low <= address) low = middle + 1;
    else high = middle;
  }
  if (low == 0) return NULL;
  const cunwind_module *module = &modules->list[low - 1];
  return address < module->image.high ? module : NULL;
}

const cunwind_module *cunwind_module_of_code(const cunwind_modules *modules, uint64_t address) {
  const cunwind_module *module = cunwind_module_at(modules, address);
  return module && address >= module->code_low && address < module->code_high ? module : NULL;
}
