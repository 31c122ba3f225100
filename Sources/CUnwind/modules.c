// The list of images. dl_iterate_phdr's counters of additions and removals tell whether it must be made anew.

#define _GNU_SOURCE
#include "modules.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// .eh_frame_hdr (LSB core, "Exception Frames"): version 1, a 4-byte pointer to .eh_frame, a 4-byte count, and a table
// of 4-byte offsets relative to the section. Every linker writes exactly this.
enum { EH_VERSION = 1, EH_COUNT_UDATA4 = 0x03, EH_TABLE_DATAREL_SDATA4 = 0x3b, EH_SIZE_MASK = 0x0f, EH_SDATA4 = 0x0b };

static void *reserve(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

bool cunwind_modules_init(cunwind_modules *modules) {
  memset(modules, 0, sizeof *modules);
  ssize_t length = readlink("/proc/self/exe", modules->executable_path, sizeof modules->executable_path - 1);
  modules->executable_path[length > 0 ? length : 0] = 0;
  modules->list = reserve(CUNWIND_MAX_IMAGES * sizeof(cunwind_module));
  modules->paths = reserve(CUNWIND_MAX_PATH_BYTES);
  if (!modules->list || !modules->paths) return false;
  cunwind_modules_refresh(modules);
  return true;
}

void cunwind_modules_destroy(cunwind_modules *modules) {
  if (modules->list) munmap(modules->list, CUNWIND_MAX_IMAGES * sizeof(cunwind_module));
  if (modules->paths) munmap(modules->paths, CUNWIND_MAX_PATH_BYTES);
  memset(modules, 0, sizeof *modules);
}

static void read_build_id(cunwind_module *module, uint64_t low, uint64_t size) {
  const uint8_t *at = (const uint8_t *)(uintptr_t)low, *end = at + size;
  while (end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    memcpy(&header, at, sizeof header);
    at += sizeof header;
    uint64_t name_bytes = ((uint64_t)header.n_namesz + 3) & ~3ull, bytes = ((uint64_t)header.n_descsz + 3) & ~3ull;
    if (name_bytes + bytes > (uint64_t)(end - at)) return;
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && memcmp(at, "GNU", 4) == 0) {
      size_t length = header.n_descsz < CUNWIND_MAX_BUILD_ID_BYTES ? header.n_descsz : CUNWIND_MAX_BUILD_ID_BYTES;
      memcpy(module->image.build_id, at + name_bytes, length);
      module->image.build_id_length = (uint8_t)length;
      return;
    }
    at += name_bytes + bytes;
  }
}

static void read_unwind_table(cunwind_module *module, uint64_t header, uint64_t size) {
  if (size < 12) return;
  uint8_t bytes[12];
  memcpy(bytes, (const void *)(uintptr_t)header, sizeof bytes);
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

static void widen(uint64_t *low, uint64_t *high, uint64_t start, uint64_t end) {
  if (*high == 0 || start < *low) *low = start;
  if (end > *high) *high = end;
}

static const char *keep_path(cunwind_modules *modules, const char *path) {
  size_t length = strlen(path) + 1;
  if (length > CUNWIND_MAX_PATH_BYTES - modules->path_bytes) return "";
  char *kept = modules->paths + modules->path_bytes;
  memcpy(kept, path, length);
  modules->path_bytes += length;
  return kept;
}

struct counters {
  unsigned long long adds, subs;
};

static int look_at_counters(struct dl_phdr_info *info, size_t size, void *context) {
  (void)size;
  struct counters *now = context;
  now->adds = info->dlpi_adds;
  now->subs = info->dlpi_subs;
  return 1;
}

// The linker's lock is held around this, so the image stays mapped and its headers can be loaded directly.
static int add_image(struct dl_phdr_info *info, size_t size, void *context) {
  (void)size;
  cunwind_modules *modules = context;
  modules->adds = info->dlpi_adds;
  modules->subs = info->dlpi_subs;
  if (modules->count == CUNWIND_MAX_IMAGES) {
    modules->omitted_count++;
    return 0;
  }
  cunwind_module *module = &modules->list[modules->count];
  memset(module, 0, sizeof *module);
  for (unsigned index = 0; index < info->dlpi_phnum; index++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[index];
    uint64_t start = info->dlpi_addr + segment->p_vaddr, end = start + segment->p_memsz;
    if (segment->p_type == PT_LOAD) {
      widen(&module->image.low, &module->image.high, start, end);
      if (segment->p_flags & PF_X) widen(&module->code_low, &module->code_high, start, end);
      if (!(segment->p_flags & PF_W)) widen(&module->fixed_low, &module->fixed_high, start, end);
    }
  }
  if (module->image.high == 0) return 0;
  for (unsigned index = 0; index < info->dlpi_phnum; index++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[index];
    uint64_t start = info->dlpi_addr + segment->p_vaddr, end = start + segment->p_memsz;
    if (start < module->fixed_low || end > module->fixed_high || end < start) continue;
    if (segment->p_type == PT_GNU_EH_FRAME) read_unwind_table(module, start, segment->p_memsz);
    if (segment->p_type == PT_NOTE && module->image.build_id_length == 0) {
      read_build_id(module, start, segment->p_memsz);
    }
  }
  const char *path = info->dlpi_name ? info->dlpi_name : "";
  bool is_executable = modules->count == 0 && path[0] == 0;  // dl_iterate_phdr(3): the first one, with an empty name.
  module->image.path = keep_path(modules, is_executable ? modules->executable_path : path);
  module->image.base = info->dlpi_addr;
  modules->count++;
  return 0;
}

// Shell's sort: in place, where qsort(3) would allocate.
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

bool cunwind_modules_refresh(cunwind_modules *modules) {
  struct counters now = {0, 0};
  dl_iterate_phdr(look_at_counters, &now);
  if (modules->count > 0 && now.adds == modules->adds && now.subs == modules->subs) return false;
  modules->count = modules->omitted_count = modules->path_bytes = 0;
  dl_iterate_phdr(add_image, modules);
  sort_by_address(modules->list, modules->count);
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
