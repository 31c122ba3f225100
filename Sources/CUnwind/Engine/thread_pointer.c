// The thread pointer: the address from which thread-local storage counts (fs base on x86-64, tpidr_el0 on aarch64).
//
// /proc does not show it, and a thread that is only read has no registers. But the kernel returns the address of any
// thread's list of robust futexes, which glibc keeps in the thread's descriptor, at the same distance from the thread
// pointer in every thread (nptl/pthread_create.c: start_thread; sysdeps/nptl/dl-tls_init_tp.c).

#define _GNU_SOURCE
#include <link.h>
#include <stddef.h>

#include "Engine/task_context.h"
#include "Memory/guarded_memory.h"
#include "System/raw_system_call.h"
#include "System/seccomp_probe.h"

CUNWIND_BARE uint64_t cunwind_own_thread_pointer(void) {
  uint64_t pointer;
#if defined(__x86_64__)
  // The first word of the thread control block is its own address (x86-64 psABI, TLS variant II).
  __asm__ volatile("movq %%fs:0, %0" : "=r"(pointer));
#else
  __asm__ volatile("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
  return pointer;
}

void cunwind_context_of_this_thread(const cunwind_context_layout *layout, cunwind_context *context) {
  cunwind_context_take(context, layout, cunwind_own_thread_pointer());
}

static uint64_t robust_list(pid_t tid) {
  uint64_t head = 0;
  size_t length = 0;
  // The kernel permits it for each thread of the own thread group (kernel/futex/syscalls.c, get_robust_list).
  long failed = cunwind_raw(SYS_get_robust_list, tid, (long)&head, (long)&length, 0, 0, 0);
  return failed == 0 ? head : 0;
}

bool cunwind_robust_list_offset(int64_t *offset) {
  // A filter of system calls may end the process for a call that few programs make.
  if (cunwind_call_is_deadly(CUNWIND_CALL_ROBUST_LIST)) return false;
  uint64_t head = robust_list(0);
  *offset = (int64_t)(head - cunwind_own_thread_pointer());
  return head != 0;
}

uint64_t cunwind_thread_pointer_of(const cunwind_context_layout *layout, pid_t tid) {
  uint64_t head = layout->knows_pointers ? robust_list(tid) : 0;
  return head == 0 ? 0 : head - (uint64_t)layout->robust_list;
}

int64_t cunwind_thread_offset(const void *address) {
  return (int64_t)((uint64_t)(uintptr_t)address - cunwind_own_thread_pointer());
}

typedef struct search {
  uint64_t value, key;  ///< `key` 0: the word itself is wanted, else one that leads to an item with both.
  int64_t *offsets;
  size_t count, capacity;
  bool leads;  ///< The word must be the address of a word with the value.
} search;

// Whether `word` is the address of a list of task-local values that begins with the wanted item.
static bool leads_to_item(const search *search, uint64_t word) {
  uint64_t head = 0, item[4];
  return word != 0 && word % sizeof word == 0 && cunwind_guarded_read(word, &head, sizeof head) == sizeof head &&
         head != 0 && head % sizeof head == 0 && cunwind_guarded_read(head, item, sizeof item) == sizeof item &&
         item[1] == search->key && item[3] == search->value;
}

static bool leads_to_value(const search *search, uint64_t word) {
  uint64_t first = 0;
  return word != 0 && word % sizeof word == 0 && cunwind_guarded_read(word, &first, sizeof first) == sizeof first &&
         first == search->value;
}

static bool is_wanted(const search *search, uint64_t word) {
  if (search->leads) return leads_to_value(search, word);
  return search->key == 0 ? word == search->value : leads_to_item(search, word);
}

static int search_block(struct dl_phdr_info *info, size_t size, void *context) {
  search *search = context;
  if (size < offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof info->dlpi_tls_data || !info->dlpi_tls_data)
    return 0;
  uint64_t bytes = 0;
  for (int index = 0; index < info->dlpi_phnum; index++) {
    if (info->dlpi_phdr[index].p_type == PT_TLS) bytes = info->dlpi_phdr[index].p_memsz;
  }
  uint64_t begin = ((uint64_t)(uintptr_t)info->dlpi_tls_data + 7) & ~7ull;
  uint64_t end = (uint64_t)(uintptr_t)info->dlpi_tls_data + bytes;
  for (uint64_t at = begin; at + sizeof at <= end; at += sizeof at) {
    uint64_t word = 0;
    if (cunwind_guarded_read(at, &word, sizeof word) != sizeof word) return 0;
    if (!is_wanted(search, word)) continue;
    if (search->count < search->capacity) search->offsets[search->count] = (int64_t)(at - cunwind_own_thread_pointer());
    search->count++;
  }
  return 0;
}

size_t cunwind_find_in_thread_storage(uint64_t value, uint64_t key, int64_t *offsets, size_t capacity) {
  search search = {.value = value, .key = key, .offsets = offsets, .capacity = capacity};
  dl_iterate_phdr(search_block, &search);
  return search.count;
}

size_t cunwind_find_pointers_to(uint64_t value, int64_t *offsets, size_t capacity) {
  search search = {.value = value, .leads = true, .offsets = offsets, .capacity = capacity};
  dl_iterate_phdr(search_block, &search);
  return search.count < capacity ? search.count : capacity;
}

uint64_t cunwind_thread_pointer(int64_t offset, pid_t tid) {
  uint64_t head = robust_list(tid);
  return head == 0 ? 0 : head - (uint64_t)offset;
}

typedef struct place {
  uint64_t address;
  uint64_t module, offset;
} place;

static int find_block(struct dl_phdr_info *info, size_t size, void *context) {
  place *place = context;
  if (size < offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof info->dlpi_tls_data || !info->dlpi_tls_data)
    return 0;
  uint64_t begin = (uint64_t)(uintptr_t)info->dlpi_tls_data;
  for (int index = 0; index < info->dlpi_phnum; index++) {
    uint64_t bytes = info->dlpi_phdr[index].p_memsz;
    if (info->dlpi_phdr[index].p_type != PT_TLS || place->address < begin || place->address - begin >= bytes) continue;
    place->module = info->dlpi_tls_modid;
    place->offset = place->address - begin;
    return 1;
  }
  return 0;
}

bool cunwind_thread_storage_place(const void *address, uint64_t *module, uint64_t *offset) {
  place place = {.address = (uint64_t)(uintptr_t)address};
  if (dl_iterate_phdr(find_block, &place) == 0) return false;
  *module = place.module;
  *offset = place.offset;
  return cunwind_thread_block(cunwind_own_thread_pointer(), place.module) + place.offset == place.address;
}
