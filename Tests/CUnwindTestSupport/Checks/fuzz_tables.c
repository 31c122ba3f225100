// Damaged unwind tables: the sections of a real image are copied, changed, and read in its place.

#define _GNU_SOURCE
#include <elf.h>
#include <string.h>
#include <sys/mman.h>

#include "Checks/random_numbers.h"
#include "Engine/engine.h"
#include "Support/checks.h"
#include "System/raw_system_call.h"
#include "Unwinding/cfi.h"

/// The bytes that are copied from the image's start: enough for all segments of libc that are not writable.
#define COPIED_BYTES (4u * 1024 * 1024)
/// The number of stack words that a step reads.
#define STACK_WORDS 512

static const cunwind_module *find_module(const cunwind_engine *engine, const char *name) {
  for (size_t index = 0; index < engine->modules.count; index++) {
    const cunwind_module *module = &engine->modules.list[index];
    if (strstr(module->image.path, name) && module->table_count > 0) return module;
  }
  return NULL;
}

// Returns the address to which the search table leads for a random function.
static uint64_t random_entry(const cunwind_module *module, uint64_t *random, int32_t entry[2]) {
  uint64_t index = cunwind_test_random(random) % module->table_count;
  memcpy(entry, (const void *)(uintptr_t)(module->table + index * 8), 8);
  return module->table_base + (uint64_t)(int64_t)entry[1];
}

/// What was made of the tables.
typedef struct result {
  uint64_t tables;
  uint64_t found;    ///< The function's entry could be read.
  uint64_t steps;    ///< Of these, a caller or the end of the stack was found.
  uint64_t refused;  ///< Of these, the step failed.
  uint64_t slowest_nanoseconds;
} result;

static void step(cunwind_engine *engine, uint64_t pc, uint64_t *random, result *result) {
  cunwind_function function;
  result->tables++;
  if (!cunwind_find_function(&engine->modules, &engine->pages, pc, &function)) return;
  result->found++;
  cunwind_registers from, to;
  for (int number = 0; number < CUNWIND_REGISTER_COUNT; number++) {
    uint64_t offset = cunwind_test_random(random) % (STACK_WORDS * 8);
    cunwind_set_register(&from, number, engine->helper.copy->low + offset);
  }
  from.known = cunwind_test_random(random) | 1ull << CUNWIND_SP;
  cunwind_set_register(&from, CUNWIND_PC, pc);
  uint64_t begin = cunwind_now();
  cunwind_step outcome = cunwind_step_by_cfi(&engine->unwinder, &from, cunwind_test_random(random) % 2, &to);
  uint64_t took = cunwind_now() - begin;
  if (took > result->slowest_nanoseconds) result->slowest_nanoseconds = took;
  *(outcome == CUNWIND_STEP_OK || outcome == CUNWIND_STEP_OUTERMOST ? &result->steps : &result->refused) += 1;
}

void cunwind_check_damaged_tables(int unused) {
  (void)unused;
  cunwind_test_settings settings = cunwind_test_settings_now();
  const uint64_t tables = 20000 * settings.rounds;
  result result = {0};
  cunwind_engine *engine = cunwind_test_engine(27);
  uint8_t *bytes = mmap(NULL, COPIED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!EXPECT(engine && bytes != MAP_FAILED)) return;
  cunwind_engine_refresh_images(engine);
  const cunwind_module *libc = find_module(engine, "/libc.so");
  if (!EXPECT(libc && libc->fixed_high - libc->image.low <= COPIED_BYTES)) return;
  uint64_t size = cunwind_guarded_read(libc->image.low, bytes, libc->fixed_high - libc->image.low);
  // The same image at another place, and the only one in the list. Everything in its tables is relative.
  cunwind_module moved = *libc;
  uint64_t distance = (uint64_t)(uintptr_t)bytes - libc->image.low;
  moved.image.low += distance;
  moved.image.high = moved.image.low + size;
  moved.code_low += distance;
  moved.code_high += distance;
  moved.fixed_low += distance;
  moved.fixed_high = moved.image.high;
  moved.table += distance;
  moved.table_base += distance;
  engine->modules.list[0] = moved;
  engine->modules.count = 1;
  engine->unwinder.copy = engine->helper.copy;
  engine->helper.copy->low = 0x7f0000000000ull;
  engine->helper.copy->length = STACK_WORDS * 8;
  uint64_t random = settings.seed * 2 + 1;
  while (result.tables < tables) {
    int32_t entry[2];
    uint64_t at = random_entry(&moved, &random, entry), pc = moved.table_base + (uint64_t)(int64_t)entry[0];
    if (at < moved.fixed_low || at >= moved.fixed_high - 256) continue;
    pc += cunwind_test_random(&random) % 64;
    // The function's entry, or its common entry; both begin within so many bytes.
    uint8_t saved[256];
    uint8_t *place = (uint8_t *)(uintptr_t)at;
    int32_t back;
    memcpy(&back, place + 4, sizeof back);
    if (cunwind_test_random(&random) % 4 == 0 && back > 0 && (uint64_t)back < at - moved.fixed_low) place += 4 - back;
    memcpy(saved, place, sizeof saved);
    for (uint64_t change = 0, count = 1 + cunwind_test_random(&random) % 6; change < count; change++) {
      place[cunwind_test_random(&random) % 64] = (uint8_t)cunwind_test_random(&random);
    }
    cunwind_page_cache_flush(&engine->pages);
    cunwind_unwinder_flush(&engine->unwinder);
    step(engine, pc, &random, &result);
    memcpy(place, saved, sizeof saved);
  }
  munmap(bytes, COPIED_BYTES);
  cunwind_engine_destroy(engine);
  cunwind_test_say("STALLWATCH_FUZZ_SEED=%llu: %llu found, %llu steps, %llu refused, slowest %llu us",
                   COUNT(settings.seed), COUNT(result.found), COUNT(result.steps), COUNT(result.refused),
                   COUNT(result.slowest_nanoseconds / 1000));
  EXPECT(result.found > 0 && result.steps > 0 && result.refused > 0);
}
