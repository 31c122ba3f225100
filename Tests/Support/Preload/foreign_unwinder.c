// A library with libunwind's name and functions, whose steps lead nowhere.

#include <stdint.h>

#if defined(__aarch64__)
#define NAME(function) _Uaarch64_##function
#else
#define NAME(function) _Ux86_64_##function
#endif

static int space;

void *NAME(create_addr_space)(void *accessors, int byte_order) {
  (void)accessors, (void)byte_order;
  return &space;
}
void NAME(destroy_addr_space)(void *address_space) { (void)address_space; }
int NAME(set_caching_policy)(void *address_space, int policy) {
  (void)address_space, (void)policy;
  return 0;
}
int NAME(set_cache_size)(void *address_space, uint64_t size, int flags) {
  (void)address_space, (void)size, (void)flags;
  return 0;
}
void NAME(flush_cache)(void *address_space, uint64_t low, uint64_t high) { (void)address_space, (void)low, (void)high; }
int NAME(init_remote)(void *cursor, void *address_space, void *argument) {
  (void)cursor, (void)address_space, (void)argument;
  return 0;
}
int NAME(step)(void *cursor) {
  (void)cursor;
  return 1;
}
int NAME(get_reg)(void *cursor, int number, uint64_t *value) {
  (void)cursor;
  *value = 4096u * (unsigned)(number + 1);
  return 0;
}
int NAME(dwarf_search_unwind_table)(void *address_space, uint64_t ip, void *table, void *info, int needs_info,
                                    void *argument) {
  (void)address_space, (void)ip, (void)table, (void)info, (void)needs_info, (void)argument;
  return 0;
}
