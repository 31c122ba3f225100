// One step by call frame information: libunwind's remote interface over the copied stack.
//
// Each step has a cursor of its own, made from the registers of the frame. That keeps the other ways of stepping equal
// partners, and keeps libunwind from going on by itself where it has no information: it would then guess.

#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "eh_frame.h"
#include "unwind.h"
#include "unwind_library.h"

/// Rows of unwind information that libunwind keeps, by PC.
#define CACHED_ROWS 1024

// What a caller can still rely on after its callee: SP and the callee-saved registers.
#if defined(__x86_64__)
static const uint8_t kept_registers[] = {CUNWIND_SP, CUNWIND_FP, 3, 12, 13, 14, 15};
#else
static const uint8_t kept_registers[] = {CUNWIND_SP, CUNWIND_FP, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28};
#endif

static int search(cunwind_unwinder *unwinder, unw_word_t pc, unw_proc_info_t *info, int need_unwind_info) {
  const cunwind_module *module = cunwind_module_of_code(unwinder->modules, pc);
  if (!module || module->table_count == 0) return -UNW_ENOINFO;
  unw_dyn_info_t table;
  memset(&table, 0, sizeof table);
  table.format = UNW_INFO_FORMAT_REMOTE_TABLE;
  table.start_ip = module->image.low;
  table.end_ip = module->image.high;
  table.u.rti.segbase = module->table_base;
  table.u.rti.table_data = module->table;
  table.u.rti.table_len = module->table_count * 8 / sizeof(unw_word_t);
  return unwinder->library->search_table(unwinder->space, pc, &table, info, need_unwind_info, unwinder);
}

static int find_proc_info(unw_addr_space_t space, unw_word_t pc, unw_proc_info_t *info, int need_unwind_info,
                          void *context) {
  (void)space;
  int result = search(context, pc, info, need_unwind_info);
  // After "no info" unw_step would guess by the frame pointer. After any other error it returns at once.
  return result == -UNW_ENOINFO ? -UNW_EUNSPEC : result;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *context) {
  (void)space, (void)info, (void)context;
}

static int no_dynamic_list(unw_addr_space_t space, unw_word_t *address, void *context) {
  (void)space, (void)address, (void)context;
  return -UNW_ENOINFO;
}

static int access_memory(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int is_write, void *context) {
  (void)space;
  if (is_write || !cunwind_read(context, address, value, sizeof *value)) return -UNW_EINVAL;
  return 0;
}

static int access_register(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value, int is_write,
                           void *context) {
  (void)space;
  cunwind_unwinder *unwinder = context;
  if (is_write || number < 0 || number >= CUNWIND_REGISTER_COUNT) return -UNW_EBADREG;
  if (!cunwind_is_known(unwinder->stepping, number)) {
    unwinder->asked_unknown = true;
    return -UNW_EBADREG;
  }
  *value = number == CUNWIND_PC ? unwinder->stepping_pc : unwinder->stepping->value[number];
  return 0;
}

static int no_float_register(unw_addr_space_t space, unw_regnum_t number, unw_fpreg_t *value, int is_write,
                             void *context) {
  (void)space, (void)number, (void)value, (void)is_write, (void)context;
  return -UNW_EBADREG;
}

static int no_resume(unw_addr_space_t space, unw_cursor_t *cursor, void *context) {
  (void)space, (void)cursor, (void)context;
  return -UNW_EINVAL;
}

static int no_name(unw_addr_space_t space, unw_word_t pc, char *name, size_t size, unw_word_t *offset, void *context) {
  (void)space, (void)pc, (void)name, (void)size, (void)offset, (void)context;
  return -UNW_ENOINFO;
}

bool cunwind_unwinder_init(cunwind_unwinder *unwinder, const cunwind_library *library, const cunwind_modules *modules,
                           cunwind_page_cache *pages) {
  static unw_accessors_t accessors = {
      .find_proc_info = find_proc_info,
      .put_unwind_info = put_unwind_info,
      .get_dyn_info_list_addr = no_dynamic_list,
      .access_mem = access_memory,
      .access_reg = access_register,
      .access_fpreg = no_float_register,
      .resume = no_resume,
      .get_proc_name = no_name,
  };
  *unwinder = (cunwind_unwinder){.library = library, .modules = modules, .pages = pages};
  if (!library->is_loaded) return true;
  unwinder->space = library->create_addr_space(&accessors, 0);
  if (!unwinder->space) {
    errno = ENOMEM;
    return false;
  }
  // The per-thread cache is one for all address spaces of a thread, and so would mix two engines up.
  library->set_caching_policy(unwinder->space, UNW_CACHE_GLOBAL);
  library->set_cache_size(unwinder->space, CACHED_ROWS, 0);
  return true;
}

void cunwind_unwinder_destroy(cunwind_unwinder *unwinder) {
  if (unwinder->space) unwinder->library->destroy_addr_space(unwinder->space);
  unwinder->space = NULL;
}

void cunwind_unwinder_flush(cunwind_unwinder *unwinder) {
  if (unwinder->space) unwinder->library->flush_cache(unwinder->space, 0, 0);
}

bool cunwind_function_at(cunwind_unwinder *unwinder, uint64_t pc, uint64_t *start, uint64_t *end) {
  cunwind_function function;
  if (!cunwind_find_function(unwinder->modules, unwinder->pages, pc, &function)) return false;
  *start = function.start;
  *end = function.end;
  return true;
}

cunwind_step cunwind_step_by_cfi(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                 cunwind_registers *to) {
  if (!unwinder->space) return CUNWIND_STEP_NO_INFO;
  // A return address can be the first of the next function, after a call that never returns: look one byte before.
  // Always through the PC, never by libunwind's own flag for it, so that its cache is always asked for the same thing.
  unwinder->stepping = from;
  unwinder->stepping_pc = from->value[CUNWIND_PC] - (is_exact ? 0 : 1);
  unwinder->failure = CUNWIND_END_COMPLETE;
  unwinder->asked_unknown = false;
  unw_cursor_t cursor;
  if (unwinder->library->init_remote(&cursor, unwinder->space, unwinder) < 0) return CUNWIND_STEP_UNKNOWN_REGISTER;
  int result = unwinder->library->step(&cursor);
  // On aarch64 libunwind answers a failure with a guess by the link register: ask the accessors first what happened.
  if (unwinder->failure != CUNWIND_END_COMPLETE) return CUNWIND_STEP_NO_MEMORY;
  if (unwinder->asked_unknown) return CUNWIND_STEP_UNKNOWN_REGISTER;
  if (result < 0) return CUNWIND_STEP_NO_INFO;

  to->known = 0;
  unw_word_t value;
  for (size_t index = 0; index < sizeof kept_registers; index++) {
    int number = kept_registers[index];
    if (unwinder->library->get_reg(&cursor, number, &value) == 0) cunwind_set_register(to, number, value);
  }
  if (result == 0) {
    // An undefined return address is how the first function of a thread is marked. libunwind also says that it is at
    // the end where the frame pointer is undefined, with a return address at hand: that is no end.
    unw_save_loc_t saved;
    if (unwinder->library->get_save_loc(&cursor, UNW_REG_IP, &saved) < 0 || saved.type != UNW_SLT_MEMORY) {
      return CUNWIND_STEP_OUTERMOST;
    }
    if (!cunwind_read(unwinder, saved.u.addr, &value, sizeof value)) return CUNWIND_STEP_NO_MEMORY;
  } else if (unwinder->library->get_reg(&cursor, UNW_REG_IP, &value) < 0) {
    return CUNWIND_STEP_NO_INFO;
  }
  cunwind_set_register(to, CUNWIND_PC, cunwind_strip(value));
  return cunwind_is_known(to, CUNWIND_SP) ? CUNWIND_STEP_OK : CUNWIND_STEP_NO_INFO;
}
