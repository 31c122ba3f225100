// Functions that only .debug_frame describes, in an image that has no tables in memory.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "Checks/random_numbers.h"
#include "Engine/engine.h"
#include "Support/checks.h"
#include "Unwinding/cfi.h"

#if defined(__x86_64__)
enum { RETURN_COLUMN = CUNWIND_PC };
#else
enum { RETURN_COLUMN = CUNWIND_LR };
#endif
/// Of the function, in the file; and where the image is.
enum { START = 0x1200, SIZE = 64, CODE = 0x1000, CODE_END = 0x3000 };
#define BASE 0x7d0000000000ull

typedef enum second { NONE, SAME, OTHER } second;

typedef struct variant {
  const char *name;
  uint8_t version, address_bytes;
  const char *letters;
  uint64_t start;
  second second;  ///< Another entry of the same code.
  uint32_t cut;   ///< The bytes that are missing at the end.
  uint32_t far;   ///< How much too far the place of the common entry is.
  bool is_usable;
} variant;

static const variant variants[] = {
    {"version 1", 1, 0, "", START, NONE, 0, 0, true},
    {"version 3", 3, 0, "", START, NONE, 0, 0, true},
    {"version 4", 4, 8, "", START, NONE, 0, 0, true},
    {"two copies", 4, 8, "", START, SAME, 0, 0, true},
    {"two functions", 4, 8, "", START, OTHER, 0, 0, false},
    {"version 2", 2, 0, "", START, NONE, 0, 0, false},
    {"short addresses", 4, 4, "", START, NONE, 0, 0, false},
    {"letters", 1, 0, "z", START, NONE, 0, 0, false},
    {"a discarded function", 1, 0, "", 0, NONE, 0, 0, false},
    {"a cut entry", 1, 0, "", START, NONE, 1, 0, false},
    {"a common entry elsewhere", 1, 0, "", START, NONE, 0, 4, false},
    {"a common entry outside", 1, 0, "", START, NONE, 0, 1 << 20, false},
};

typedef struct section {
  uint8_t bytes[512];
  size_t size;
} section;

static void put(section *to, const void *bytes, size_t size) {
  memcpy(to->bytes + to->size, bytes, size);
  to->size += size;
}

static void put_byte(section *to, uint8_t byte) { put(to, &byte, 1); }
static void put_word(section *to, uint64_t word, size_t size) { put(to, &word, size); }

// Writes the length of the entry that begins at `place`.
static void end_entry(section *to, size_t place) {
  uint32_t length = (uint32_t)(to->size - place - sizeof length);
  memcpy(to->bytes + place, &length, sizeof length);
}

// Adds a common entry, and one of a function that moves the CFA from 16 to 32 bytes above SP after `moved_after` bytes.
static void add_function(section *to, const variant *variant, uint8_t moved_after) {
  size_t common = to->size;
  put_word(to, 0, 4);
  put_word(to, UINT32_MAX, 4);
  put_byte(to, variant->version);
  put(to, variant->letters, strlen(variant->letters) + 1);
  if (variant->version == 4) put_word(to, variant->address_bytes, 2);
  // Factors 1 and -8; DW_CFA_def_cfa SP, 16; DW_CFA_offset RETURN_COLUMN, 1.
  const uint8_t rest[] = {1, 0x78, RETURN_COLUMN, 0x0c, CUNWIND_SP, 16, 0x80 | RETURN_COLUMN, 1};
  put(to, rest, sizeof rest);
  end_entry(to, common);
  size_t place = to->size;
  put_word(to, 0, 4);
  put_word(to, common + variant->far, 4);
  put_word(to, variant->start, 8);
  put_word(to, variant->start == 0 ? CODE_END : SIZE, 8);
  // DW_CFA_set_loc; DW_CFA_def_cfa_offset 32.
  put_byte(to, 0x01);
  put_word(to, variant->start + moved_after, 8);
  put_word(to, 0x200e, 2);
  end_entry(to, place);
}

// Makes the image with that number the only one.
static cunwind_module *use_image(cunwind_engine *engine, uint8_t number) {
  cunwind_module *module = &engine->modules.list[0];
  *module = (cunwind_module){.image = {.base = BASE, .low = BASE, .high = BASE + CODE_END, .path = ""},
                             .code_low = BASE + CODE,
                             .code_high = BASE + CODE_END};
  memcpy(module->image.build_id, "debug frames", 12);
  module->image.build_id[12] = number;
  module->image.build_id_length = 20;
  engine->modules.count = 1;
  return module;
}

// Returns the word of the stack to which a step from `place` returns; 0: none.
static uint64_t step(cunwind_engine *engine, uint64_t place) {
  cunwind_registers from = {.known = 0}, to;
  cunwind_set_register(&from, CUNWIND_PC, BASE + place);
  cunwind_set_register(&from, CUNWIND_SP, engine->helper.copy->low);
  return cunwind_step_by_cfi(&engine->unwinder, &from, true, &to) == CUNWIND_STEP_OK ? to.value[CUNWIND_PC] : 0;
}

static void try_variant(cunwind_engine *engine, uint8_t number) {
  enum { MOVED_AFTER = 8 };
  const variant *variant = &variants[number];
  cunwind_module *module = use_image(engine, number);
  section section = {.size = 0};
  add_function(&section, variant, MOVED_AFTER);
  if (variant->second != NONE) add_function(&section, variant, variant->second == SAME ? MOVED_AFTER : 2 * MOVED_AFTER);
  // It is used from now on, also where the step has been refused before.
  bool is_right = step(engine, START) == 0 &&
                  cunwind_add_debug_frame(&module->image, section.bytes, section.size - variant->cut) &&
                  step(engine, START) == (variant->is_usable ? 1 : 0) &&
                  step(engine, START + MOVED_AFTER) == (variant->is_usable ? 3 : 0) && step(engine, START - 1) == 0 &&
                  step(engine, START + SIZE) == 0 && step(engine, CODE_END) == 0;
  if (!EXPECT(is_right)) cunwind_test_say(" with %s", variant->name);
}

// Changes some bytes of a section that is in use: a step ends, and does not crash.
static void damage(cunwind_engine *engine, uint64_t rounds, uint64_t random) {
  cunwind_function function;
  use_image(engine, 2);
  if (!EXPECT(cunwind_find_function(&engine->modules, &engine->pages, BASE + START, &function))) return;
  uint8_t *bytes = (uint8_t *)(uintptr_t)function.entries.low, saved[512];
  size_t size = (size_t)(function.entries.high - function.entries.low);
  memcpy(saved, bytes, size);
  uint64_t steps = 0;
  for (uint64_t round = 0; round < rounds; round++) {
    for (uint64_t change = 0, count = 1 + cunwind_test_random(&random) % 4; change < count; change++)
      bytes[cunwind_test_random(&random) % size] = (uint8_t)cunwind_test_random(&random);
    cunwind_page_cache_flush(&engine->pages);
    cunwind_unwinder_flush(&engine->unwinder);
    steps += step(engine, START + cunwind_test_random(&random) % SIZE) != 0;
    memcpy(bytes, saved, size);
  }
  cunwind_test_say("%llu damaged sections, %llu steps", COUNT(rounds), COUNT(steps));
  EXPECT(steps > 0 && steps < rounds);
}

void cunwind_check_debug_frames(int unused) {
  (void)unused;
  enum { WORDS = 8 };
  cunwind_test_settings settings = cunwind_test_settings_now();
  cunwind_engine *engine = cunwind_test_engine(27);
  if (!EXPECT(engine)) return;
  engine->unwinder.copy = engine->helper.copy;
  engine->helper.copy->low = 0x7e0000000000ull;
  engine->helper.copy->length = WORDS * 8;
  for (uint64_t word = 0; word < WORDS; word++) memcpy(engine->helper.copy->bytes + word * 8, &word, sizeof word);
  for (size_t number = 0; number < sizeof variants / sizeof *variants; number++) try_variant(engine, (uint8_t)number);
  // Not of an image that cannot be told from another.
  cunwind_module *module = use_image(engine, 0);
  module->image.build_id_length = 0;
  EXPECT(step(engine, START) == 0);
  damage(engine, 20000 * settings.rounds, settings.seed * 2 + 1);
  cunwind_engine_destroy(engine);
}

bool cunwind_test_finds_function(const char *library, const char *name) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  uint64_t place = handle ? (uint64_t)(uintptr_t)dlsym(handle, name) : 0, start = 0, end;
  cunwind_engine *engine = place ? cunwind_test_engine(27) : NULL;
  if (!engine) return false;
  cunwind_engine_refresh_images(engine);
  bool is_found = cunwind_function_at(&engine->unwinder, place, &start, &end) && start == place;
  cunwind_engine_destroy(engine);
  return is_found;
}
