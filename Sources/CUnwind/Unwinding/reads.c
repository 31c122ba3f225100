// What the steps read: the copied stack, the images, and the bounds of functions. Below the steps and the machines.

#include "Unwinding/cfi.h"
#include "Unwinding/unwind.h"

bool cunwind_read(cunwind_unwinder *unwinder, uint64_t address, void *to, size_t size) {
  if (cunwind_stack_copy_read(unwinder->copy, address, to, size)) return true;
  const cunwind_module *module = cunwind_module_at(unwinder->modules, address);
  if (module) {
    // Unwind information is read-only, but points to personality routines through writable words.
    bool is_fixed = address >= module->fixed_low && address < module->fixed_high;
    if (is_fixed ? cunwind_page_cache_read(unwinder->pages, address, to, size)
                 : cunwind_guarded_read_all(address, to, size))
      return true;
    unwinder->failure = CUNWIND_END_BAD_MEMORY;
    return false;
  }
  // In no image, so it should be stack; if mapped, it is outside the copy, and may have changed: the thread runs again.
  uint8_t probe;
  bool is_mapped = cunwind_guarded_read_all(address, &probe, sizeof probe);
  unwinder->missing = address;
  unwinder->failure = is_mapped ? CUNWIND_END_NOT_IN_COPY : CUNWIND_END_BAD_MEMORY;
  return false;
}

bool cunwind_function_at(cunwind_unwinder *unwinder, uint64_t pc, uint64_t *start, uint64_t *end) {
  cunwind_function function;
  if (!cunwind_find_function(unwinder->modules, unwinder->pages, pc, &function)) return false;
  *start = function.start;
  *end = function.end;
  return true;
}
