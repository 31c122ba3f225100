// The creation and destruction of an engine, and its images.

#define _GNU_SOURCE
#include "Engine/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "System/own_process.h"
#include "System/raw_system_call.h"

// Before the list of images is made, which then has libunwind, too.
static void choose_unwinder(cunwind_engine *engine) {
  const char *wanted = getenv("STALLWATCH_UNWINDER");
  if (wanted && strcmp(wanted, "builtin") == 0) {
    snprintf(engine->unwinder_reason, sizeof engine->unwinder_reason, "STALLWATCH_UNWINDER is builtin");
    return;
  }
  engine->unwinder.library = cunwind_library_create(CUNWIND_LIBRARY, engine->unwinder_reason);
}

// A file of that name may be anything: lets it step out of a function of the C library, beside our own stepper.
static void check_unwinder(cunwind_engine *engine) {
  cunwind_unwinder *unwinder = &engine->unwinder;
  if (!unwinder->library) return;
  cunwind_registers from = {0}, caller, own;
  uint64_t place = (uint64_t)(uintptr_t)engine->helper.copy->bytes;
  for (int number = 0; number < CUNWIND_REGISTER_COUNT; number++) cunwind_set_register(&from, number, place);
  cunwind_set_register(&from, CUNWIND_PC, (uint64_t)(uintptr_t)getenv);
  // The caller's PC may not be 0, which newer versions of libunwind take for the end.
  memcpy(engine->helper.copy->bytes, &place, sizeof place);
  engine->helper.copy->low = place;
  engine->helper.copy->length = CUNWIND_PAGE_BYTES;
  unwinder->copy = engine->helper.copy;
  // Without a table of the function there is nothing to compare.
  bool is_same = cunwind_step_by_cfi(unwinder, &from, true, &caller) != CUNWIND_STEP_OK ||
                 (cunwind_step_by_own_rules(unwinder, &from, true, &own) == CUNWIND_STEP_OK &&
                  cunwind_registers_are_same(&caller, &own));
  engine->helper.copy->length = 0;
  // A program that never stalls reads no more.
  cunwind_page_cache_flush(&engine->pages);
  if (is_same && unwinder->stood_in == 0) return;
  cunwind_library_destroy(unwinder->library);
  unwinder->library = NULL;
  unwinder->stood_in = 0;
  snprintf(engine->unwinder_reason, sizeof engine->unwinder_reason, CUNWIND_LIBRARY " does not work");
}

cunwind_unwinder_status cunwind_engine_unwinder(const cunwind_engine *engine) {
  const cunwind_unwinder *unwinder = &engine->unwinder;
  return (cunwind_unwinder_status){
      .name = unwinder->library ? unwinder->library->name : "built-in",
      .reason = unwinder->library ? NULL : engine->unwinder_reason,
  };
}

cunwind_engine *cunwind_engine_create(const cunwind_options *options) {
  if (options->signal_number < 1 || options->signal_number > 64 || options->harmless_signal_number < 0 ||
      options->harmless_signal_number > 64) {
    errno = EINVAL;
    return NULL;
  }
  cunwind_engine *engine = calloc(1, sizeof *engine);
  if (!engine) return NULL;
  engine->process = cunwind_process_number();
  engine->unwinder.modules = &engine->modules;
  engine->unwinder.pages = &engine->pages;
  engine->signal_number = options->signal_number;
  engine->harmless_signal_number = options->harmless_signal_number;
  choose_unwinder(engine);
  if (cunwind_guarded_choose(options->memory_access) && cunwind_modules_init(&engine->modules) &&
      cunwind_page_cache_init(&engine->pages) && cunwind_helper_init(&engine->helper) &&
      (engine->helper.copy = cunwind_copy_create()) && cunwind_prepare_spare(engine)) {
    check_unwinder(engine);
    return engine;
  }
  int error = errno;
  cunwind_engine_destroy(engine);
  errno = error;
  return NULL;
}

void cunwind_engine_destroy(cunwind_engine *engine) {
  if (!engine) return;
  cunwind_signal_slot_destroy(engine);
  bool is_parent = engine->process == cunwind_process_number();
  // In a child of fork(2), the watchdog may have held libunwind's locks.
  if (engine->unwinder.library && is_parent) cunwind_library_destroy(engine->unwinder.library);
  cunwind_page_cache_destroy(&engine->pages);
  cunwind_modules_destroy(&engine->modules);
  // Only this engine reaps its helpers. A helper that still runs may write into its buffers, so they are leaked:
  // otherwise another allocation could get their addresses.
  cunwind_pending_destroy(engine);
  // Only the parent may kill its helpers, not a child of fork(2).
  engine->helper.left_until = is_parent ? 0 : UINT64_MAX;
  if (cunwind_helper_has_ended(&engine->helper, CUNWIND_HELPER_GRACE_NANOSECONDS))
    cunwind_helper_destroy(&engine->helper);
  free(engine);
}

void cunwind_engine_prepare(cunwind_engine *engine) {
  // Also before a read: the next capture that needs the helper may come much later.
  cunwind_helper_has_ended(&engine->helper, 0);
  cunwind_tidy_pending(engine);
  // The app may have added a filter that ends the process for the call that reads memory.
  cunwind_guarded_renew();
}

void cunwind_update_images(cunwind_engine *engine) {
  if (!cunwind_modules_refresh(&engine->modules)) return;
  cunwind_page_cache_flush(&engine->pages);
  cunwind_unwinder_flush(&engine->unwinder);
}

size_t cunwind_engine_refresh_images(cunwind_engine *engine) {
  cunwind_engine_prepare(engine);
  cunwind_update_images(engine);
  return engine->modules.count;
}

uint64_t cunwind_engine_image_generation(const cunwind_engine *engine) { return engine->modules.generation; }

bool cunwind_engine_image(const cunwind_engine *engine, size_t index, cunwind_image *image) {
  if (index >= engine->modules.count) return false;
  *image = engine->modules.list[index].image;
  return true;
}
