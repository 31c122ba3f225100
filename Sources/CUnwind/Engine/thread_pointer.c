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
  cunwind_read_context(context, layout, cunwind_own_thread_pointer());
}

static uint64_t robust_list(pid_t tid) {
  uint64_t head = 0;
  size_t length = 0;
  // A filter of system calls, also one that the app adds later, may end the process for a call that few programs make.
  if (cunwind_call_was_deadly(CUNWIND_CALL_ROBUST_LIST)) return 0;
  // The kernel permits it for each thread of the own thread group (kernel/futex/syscalls.c, get_robust_list).
  long failed = cunwind_raw(SYS_get_robust_list, tid, (long)&head, (long)&length, 0, 0, 0);
  return failed == 0 ? head : 0;
}

bool cunwind_robust_list_offset(int64_t *offset) {
  uint64_t head = robust_list(0);
  *offset = (int64_t)(head - cunwind_own_thread_pointer());
  return head != 0;
}

int64_t cunwind_thread_offset(const void *address) {
  return (int64_t)((uint64_t)(uintptr_t)address - cunwind_own_thread_pointer());
}

// Finds the calling thread's TLS block of an image; empty if there is none.
static void find_block(const struct dl_phdr_info *info, size_t size, uint64_t *begin, uint64_t *end) {
  *begin = *end = 0;
  if (size < offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof info->dlpi_tls_data || !info->dlpi_tls_data) return;
  *begin = *end = (uint64_t)(uintptr_t)info->dlpi_tls_data;
  for (int index = 0; index < info->dlpi_phnum; index++) {
    if (info->dlpi_phdr[index].p_type == PT_TLS) *end = *begin + info->dlpi_phdr[index].p_memsz;
  }
}

typedef struct search {
  uint64_t value, key;  ///< `key` 0: the word itself is wanted, else one that leads to an item with both.
  int64_t *offsets;
  size_t count, capacity;
  bool leads;  ///< The word must be the address of a word with the value.
} search;

static bool read_words(uint64_t address, uint64_t *words, size_t count) {
  return address != 0 && address % sizeof *words == 0 &&
         cunwind_guarded_read_all(address, words, count * sizeof *words);
}

static bool is_wanted(const search *search, uint64_t word) {
  uint64_t head, item[4];
  if (search->key == 0 && !search->leads) return word == search->value;
  if (!read_words(word, &head, 1)) return false;
  if (search->leads) return head == search->value;
  // A list of task-local values.
  return read_words(head, item, 4) && item[1] == search->key && item[3] == search->value;
}

static int search_block(struct dl_phdr_info *info, size_t size, void *context) {
  search *search = context;
  uint64_t begin, end;
  find_block(info, size, &begin, &end);
  for (uint64_t at = (begin + 7) & ~7ull; at + sizeof at <= end; at += sizeof at) {
    uint64_t word = 0;
    if (!cunwind_guarded_read_all(at, &word, sizeof word)) return 0;
    if (!is_wanted(search, word)) continue;
    if (search->count == search->capacity) return 1;
    search->offsets[search->count++] = (int64_t)(at - cunwind_own_thread_pointer());
  }
  return 0;
}

size_t cunwind_find_in_thread_storage(uint64_t value, bool leads, uint64_t key, int64_t *offsets, size_t capacity) {
  search search = {.value = value, .leads = leads, .key = key, .offsets = offsets, .capacity = capacity};
  cunwind_guarded_renew();
  dl_iterate_phdr(search_block, &search);
  return search.count;
}

uint64_t cunwind_thread_pointer(int64_t offset, pid_t tid) {
  uint64_t head = robust_list(tid);
  return head == 0 ? 0 : head - (uint64_t)offset;
}

typedef struct place {
  uint64_t address;
  uint64_t module, offset;
} place;

static int find_place(struct dl_phdr_info *info, size_t size, void *context) {
  place *place = context;
  uint64_t begin, end;
  find_block(info, size, &begin, &end);
  if (place->address < begin || place->address >= end) return 0;
  place->module = info->dlpi_tls_modid;
  place->offset = place->address - begin;
  return 1;
}

bool cunwind_thread_storage_place(const void *address, uint64_t *module, uint64_t *offset) {
  place place = {.address = (uint64_t)(uintptr_t)address};
  if (dl_iterate_phdr(find_place, &place) == 0) return false;
  *module = place.module;
  *offset = place.offset;
  return cunwind_thread_block(cunwind_own_thread_pointer(), place.module) + place.offset == place.address;
}
