// Steps by libunwind's remote interface, over the copied stack. Each step has its own cursor, made from the frame's
// registers: libunwind must not go on by itself where it has no information, because it would then guess.
//
// libunwind is loaded, and never linked: a library that exports `_Unwind_RaiseException` before libgcc_s takes all C++
// exceptions of the program, which then take 30 times as long (measured). RTLD_LOCAL keeps its symbols out of the
// program's. RTLD_NODELETE: it keeps two descriptors open, which unloading would leak.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#if !__has_include(<libunwind.h>)
#error "StallWatch needs the headers of libunwind: run scripts/install-dependencies.sh, or install libunwind-dev."
#endif
#include <libunwind.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "System/own_process.h"
#include "Unwinding/unwind.h"

#define TEXT(name) #name
#define EXPANDED_TEXT(name) TEXT(name)
// The name in the library for which libunwind's macro `name` stands, such as _Ux86_64_step.
#define SYMBOL(name) EXPANDED_TEXT(name)

/// The rows of unwind information that libunwind keeps, by PC.
#define CACHED_ROWS 1024
/// The room for accessors and for a cursor. Both grow with libunwind's versions, while its soname stays.
#define ACCESSORS 16
#define CURSOR_WORDS 1024

// Not in libunwind's headers, but exported for debuggers: its own ptrace library uses it.
typedef int search_table_function(unw_addr_space_t space, unw_word_t pc, unw_dyn_info_t *table, unw_proc_info_t *info,
                                  int need_unwind_info, void *context);

typedef struct library_stepper {
  cunwind_library base;
  __typeof__(unw_create_addr_space) *create_addr_space;
  __typeof__(unw_destroy_addr_space) *destroy_addr_space;
  __typeof__(unw_set_caching_policy) *set_caching_policy;
  __typeof__(unw_set_cache_size) *set_cache_size;
  __typeof__(unw_flush_cache) *flush_cache;
  __typeof__(unw_init_remote) *init_remote;
  __typeof__(unw_step) *step;
  __typeof__(unw_get_reg) *get_reg;
  search_table_function *search_table;
  unw_addr_space_t cached;  ///< For return addresses; NULL before the first one, because it takes 26 KB.
  unw_addr_space_t exact;   ///< Without a cache: its key is the PC alone, and means a return address.
  // The step under way.
  cunwind_unwinder *unwinder;
  const cunwind_registers *from;
  uint64_t pc;
  bool has_failed;  ///< The step needed a register that is not known, or memory that cannot be read.
  union {
    unw_cursor_t cursor;
    uint64_t words[CURSOR_WORDS];
  };
} library_stepper;

// ---- What libunwind asks for ----------------------------------------------------------------------------------------

static int find_proc_info(unw_addr_space_t space, unw_word_t pc, unw_proc_info_t *info, int need_unwind_info,
                          void *context) {
  library_stepper *stepper = context;
  const cunwind_module *module = cunwind_module_of_code(stepper->unwinder->modules, pc);
  int result = -UNW_EUNSPEC;
  if (module && module->table_count > 0) {
    unw_dyn_info_t table;
    memset(&table, 0, sizeof table);
    table.format = UNW_INFO_FORMAT_REMOTE_TABLE;
    table.start_ip = module->image.low;
    table.end_ip = module->image.high;
    table.u.rti.segbase = module->table_base;
    table.u.rti.table_data = module->table;
    table.u.rti.table_len = module->table_count * 8 / sizeof(unw_word_t);
    result = stepper->search_table(space, pc, &table, info, need_unwind_info, context);
  }
  if (result < 0) stepper->has_failed = true;
  // After "no information" it would guess by the frame pointer. After any other error it ends the step.
  return result == -UNW_ENOINFO ? -UNW_EUNSPEC : result;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *context) {
  (void)space, (void)info, (void)context;
}

static int find_no_dynamic_list(unw_addr_space_t space, unw_word_t *address, void *context) {
  (void)space, (void)address, (void)context;
  return -UNW_ENOINFO;
}

static int access_memory(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int is_write, void *context) {
  (void)space;
  library_stepper *stepper = context;
  if (!is_write && cunwind_read(stepper->unwinder, address, value, sizeof *value)) return 0;
  stepper->has_failed = true;
  return -UNW_EINVAL;
}

static int access_register(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value, int is_write,
                           void *context) {
  (void)space;
  library_stepper *stepper = context;
  if (is_write || number < 0 || number >= CUNWIND_REGISTER_COUNT || !cunwind_is_known(stepper->from, number)) {
    stepper->has_failed = true;
    return -UNW_EBADREG;
  }
  *value = number == CUNWIND_PC ? stepper->pc : stepper->from->value[number];
  return 0;
}

static int refuse_float_register(unw_addr_space_t space, unw_regnum_t number, unw_fpreg_t *value, int is_write,
                                 void *context) {
  (void)space, (void)number, (void)value, (void)is_write, (void)context;
  return -UNW_EBADREG;
}

static int refuse_resume(unw_addr_space_t space, unw_cursor_t *cursor, void *context) {
  (void)space, (void)cursor, (void)context;
  return -UNW_EINVAL;
}

static int refuse_name(unw_addr_space_t space, unw_word_t pc, char *name, size_t size, unw_word_t *offset,
                       void *context) {
  (void)space, (void)pc, (void)name, (void)size, (void)offset, (void)context;
  return -UNW_ENOINFO;
}

static unw_addr_space_t create_space(library_stepper *stepper, unw_caching_policy_t policy) {
  static union {
    unw_accessors_t known;
    void *all[ACCESSORS];
  } accessors = {.known = {
                     .find_proc_info = find_proc_info,
                     .put_unwind_info = put_unwind_info,
                     .get_dyn_info_list_addr = find_no_dynamic_list,
                     .access_mem = access_memory,
                     .access_reg = access_register,
                     .access_fpreg = refuse_float_register,
                     .resume = refuse_resume,
                     .get_proc_name = refuse_name,
                 }};
  unw_addr_space_t space = stepper->create_addr_space(&accessors.known, 0);
  if (!space) return NULL;
  // The cache per thread would be one for all address spaces of a thread.
  stepper->set_caching_policy(space, policy);
  if (policy != UNW_CACHE_NONE) stepper->set_cache_size(space, CACHED_ROWS, 0);
  return space;
}

// ---- The stepper ----------------------------------------------------------------------------------------------------

static unw_addr_space_t space_for(library_stepper *stepper, bool is_exact) {
  if (!is_exact && !stepper->cached) stepper->cached = create_space(stepper, UNW_CACHE_GLOBAL);
  return is_exact || !stepper->cached ? stepper->exact : stepper->cached;
}

cunwind_step cunwind_step_by_library(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                     cunwind_registers *to) {
  library_stepper *stepper = (library_stepper *)unwinder->library;
  stepper->unwinder = unwinder;
  stepper->from = from;
  stepper->pc = from->value[CUNWIND_PC] - (is_exact ? 0 : 1);
  stepper->has_failed = false;
  unw_cursor_t *cursor = &stepper->cursor;
  if (stepper->init_remote(cursor, space_for(stepper, is_exact), stepper) < 0) return CUNWIND_STEP_UNKNOWN_REGISTER;
  // 0: it calls the frame the outermost one, which ours would have known. On aarch64 it also guesses after a failure.
  if (stepper->step(cursor) <= 0 || stepper->has_failed) return CUNWIND_STEP_NO_INFO;
  unw_word_t value;
  to->known = 0;
  if (stepper->get_reg(cursor, UNW_REG_IP, &value) < 0) return CUNWIND_STEP_NO_INFO;
  cunwind_set_register(to, CUNWIND_PC, cunwind_strip(value));
  if (stepper->get_reg(cursor, CUNWIND_SP, &value) < 0) return CUNWIND_STEP_NO_INFO;
  cunwind_set_register(to, CUNWIND_SP, value);
  for (size_t index = 0; index < CUNWIND_KEPT_COUNT; index++) {
    int number = cunwind_kept_registers[index];
    if (stepper->get_reg(cursor, number, &value) == 0) cunwind_set_register(to, number, value);
  }
  return CUNWIND_STEP_OK;
}

void cunwind_library_flush(cunwind_library *library) {
  library_stepper *stepper = (library_stepper *)library;
  if (stepper->cached) stepper->flush_cache(stepper->cached, 0, 0);
}

void cunwind_library_destroy(cunwind_library *library) {
  library_stepper *stepper = (library_stepper *)library;
  if (stepper->exact) stepper->destroy_addr_space(stepper->exact);
  if (stepper->cached) stepper->destroy_addr_space(stepper->cached);
  free(stepper);
}

static bool find(void *handle, const char *name, void *to) {
  void *found = dlsym(handle, name);
  memcpy(to, &found, sizeof found);  // ISO C has no conversion from an object's to a function's pointer.
  return found != NULL;
}

static bool find_all(library_stepper *stepper, void *handle) {
  return find(handle, SYMBOL(unw_create_addr_space), &stepper->create_addr_space) &&
         find(handle, SYMBOL(unw_destroy_addr_space), &stepper->destroy_addr_space) &&
         find(handle, SYMBOL(unw_set_caching_policy), &stepper->set_caching_policy) &&
         find(handle, SYMBOL(unw_set_cache_size), &stepper->set_cache_size) &&
         find(handle, SYMBOL(unw_flush_cache), &stepper->flush_cache) &&
         find(handle, SYMBOL(unw_init_remote), &stepper->init_remote) &&
         find(handle, SYMBOL(unw_step), &stepper->step) && find(handle, SYMBOL(unw_get_reg), &stepper->get_reg) &&
         find(handle, SYMBOL(UNW_OBJ(dwarf_search_unwind_table)), &stepper->search_table);
}

// The library does not tell its version. From 1.7 on it has a function more; its headers tell the rest.
static void set_name(library_stepper *stepper, void *handle) {
  bool has_file_names = dlsym(handle, SYMBOL(UNW_OBJ(get_elf_filename))) != NULL;
  bool is_as_built = has_file_names == (UNW_VERSION >= UNW_VERSION_CODE(1, 7));
  const char *name = is_as_built ? NULL : has_file_names ? "libunwind 1.7 or newer" : "libunwind 1.6 or older";
  if (name) snprintf(stepper->base.name, sizeof stepper->base.name, "%s", name);
  else
    snprintf(stepper->base.name, sizeof stepper->base.name, "libunwind %d.%d.%s", UNW_VERSION_MAJOR, UNW_VERSION_MINOR,
             EXPANDED_TEXT(UNW_VERSION_EXTRA));
}

// A static executable has no list of images. It would load a second C library.
static bool may_load(void) { return _r_debug.r_map && _r_debug.r_map->l_next; }

cunwind_library *cunwind_library_create(const char *library, char *reason) {
  // The process whose threads may be in libunwind. A child of fork(2) has its locks, as they were.
  static uint32_t user;
  uint32_t before = 0, process = cunwind_process_number();
  bool is_first = __atomic_compare_exchange_n(&user, &before, process, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  if (!is_first && before != process) {
    snprintf(reason, CUNWIND_UNWINDER_REASON_BYTES, "the parent process uses it, and may have left it locked");
    return NULL;
  }
  if (!may_load()) {
    snprintf(reason, CUNWIND_UNWINDER_REASON_BYTES, "a static executable cannot load it");
    return NULL;
  }
  library_stepper *stepper = calloc(1, sizeof *stepper);
  void *handle = stepper ? dlopen(library, RTLD_NOW | RTLD_LOCAL) : NULL;
  const char *error = stepper && !handle ? dlerror() : NULL;
  if (!handle) {
    snprintf(reason, CUNWIND_UNWINDER_REASON_BYTES, "%s", error ? error : strerror(ENOMEM));
  } else if (!find_all(stepper, handle)) {
    snprintf(reason, CUNWIND_UNWINDER_REASON_BYTES, "%s lacks functions of libunwind", library);
  } else if (!(stepper->exact = create_space(stepper, UNW_CACHE_NONE))) {
    snprintf(reason, CUNWIND_UNWINDER_REASON_BYTES, "%s", strerror(ENOMEM));
  } else {
    set_name(stepper, handle);
    // It stays for good.
    dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | RTLD_NOLOAD);
    return &stepper->base;
  }
  if (handle) dlclose(handle);
  free(stepper);
  return NULL;
}
