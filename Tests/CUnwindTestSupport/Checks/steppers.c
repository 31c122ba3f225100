// Both steppers, over the functions of all images of the process, with random registers.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "Checks/random_numbers.h"
#include "Engine/engine.h"
#include "Support/checks.h"
#include "Unwinding/cfi.h"

/// The words of the stack that the registers lead to: functions have frames of up to some kilobytes.
#define STACK_WORDS 4096

/// What both steppers made of the functions of all images.
typedef struct result {
  uint64_t functions;
  uint64_t compared;  ///< Steps of both.
  uint64_t disagreements;
  uint64_t first;  ///< The PC of the first disagreement.
} result;

static void set_random_registers(const cunwind_engine *engine, uint64_t pc, uint64_t *random, cunwind_registers *from) {
  uint64_t low = engine->helper.copy->low;
  for (int number = 0; number < CUNWIND_REGISTER_COUNT; number++) {
    cunwind_set_register(from, number, low + 8 * (STACK_WORDS / 4 + cunwind_test_random(random) % (STACK_WORDS / 4)));
  }
  // Half of them as after a read, and a quarter without the frame pointer only.
  uint64_t draw = cunwind_test_random(random) % 4;
  if (draw < 2) from->known = 1ull << CUNWIND_SP;
  else if (draw == 2) from->known &= ~(1ull << CUNWIND_FP);
  cunwind_set_register(from, CUNWIND_PC, pc);
}

static void step(cunwind_engine *engine, uint64_t pc, uint64_t *random, result *result) {
  cunwind_registers from = {0}, to;
  set_random_registers(engine, pc, random, &from);
  cunwind_unwinder *unwinder = &engine->unwinder;
  bool is_exact = cunwind_test_random(random) % 2;
  uint64_t before = unwinder->stood_in;
  cunwind_step outcome = cunwind_step_by_cfi(unwinder, &from, is_exact, &to);
  if (outcome != CUNWIND_STEP_OK) return;
  bool is_by_library = unwinder->library && unwinder->stood_in == before &&
                       cunwind_stepper_for(unwinder, pc - (is_exact ? 0 : 1)) == CUNWIND_PC_ANY;
  if (!is_by_library) return;
  cunwind_registers own;
  result->compared++;
  if (cunwind_step_by_own_rules(unwinder, &from, is_exact, &own) == CUNWIND_STEP_OK &&
      cunwind_registers_are_same(&own, &to))
    return;
  if (result->disagreements++ == 0) result->first = pc;
}

// Registers as after a read, without the frame pointer, and whole; exact PCs and return addresses. Random pages of tables
// replace each other in the cache, and the same PC is stepped from as both kinds.
void cunwind_check_steppers(int unused) {
  (void)unused;
  cunwind_test_settings settings = cunwind_test_settings_now();
  // An emulated machine's program has few images.
  const uint64_t every = settings.is_emulated || settings.rounds >= 40 ? 1 : 40 / settings.rounds;
  result result = {0};
  cunwind_engine *engine = settings.wants_libunwind ? cunwind_test_engine(27) : NULL;
  if (!settings.wants_libunwind || !EXPECT(engine)) return;
  cunwind_engine_refresh_images(engine);
  cunwind_unwinder *unwinder = &engine->unwinder;
  EXPECT(unwinder->library);
  unwinder->copy = engine->helper.copy;
  engine->helper.copy->low = 0x7e0000000000ull;
  engine->helper.copy->length = STACK_WORDS * 8;
  uint64_t random = settings.seed * 2 + 1;
  for (uint64_t word = 0; word < STACK_WORDS; word++) {
    uint64_t value = cunwind_test_random(&random);
    memcpy(engine->helper.copy->bytes + word * 8, &value, sizeof value);
  }
  for (size_t index = 0; index < engine->modules.count; index++) {
    const cunwind_module *module = &engine->modules.list[index];
    for (uint64_t entry = cunwind_test_random(&random) % every; entry < module->table_count; entry += every) {
      int32_t words[2];
      cunwind_function function;
      if (cunwind_guarded_read(module->table + entry * 8, words, sizeof words) != sizeof words) break;
      uint64_t start = module->table_base + (uint64_t)(int64_t)words[0];
      if (!cunwind_find_function(&engine->modules, &engine->pages, start, &function)) continue;
      uint64_t length = function.end - function.start;
      result.functions++;
      step(engine, function.start, &random, &result);
      step(engine, function.start + cunwind_test_random(&random) % length, &random, &result);
      step(engine, function.end - 1, &random, &result);
    }
  }
  cunwind_test_say(
      "STALLWATCH_FUZZ_SEED=%llu: %llu functions, %llu compared steps, %llu by ours alone, %llu differ, "
      "the first at %#llx",
      COUNT(settings.seed), COUNT(result.functions), COUNT(result.compared), COUNT(unwinder->stood_in),
      COUNT(result.disagreements), COUNT(result.first));
  EXPECT(result.disagreements == 0);
  EXPECT(result.functions > 1000 && result.compared * (settings.is_emulated ? 2 : 1) > result.functions);
  // Ours has more rules than libunwind, but compilers do not use them.
  EXPECT(unwinder->stood_in < result.compared / 1000 || settings.is_emulated);
  cunwind_engine_destroy(engine);
}

// Returns a PC in the code of an image that no table covers; 0 if there is none.
static uint64_t find_uncovered(const cunwind_engine *engine) {
  cunwind_page_cache pages = engine->pages;
  cunwind_function function;
  for (size_t index = 0; index < engine->modules.count; index++) {
    const cunwind_module *module = &engine->modules.list[index];
    for (uint64_t pc = module->code_low; module->table_count > 0 && pc < module->code_low + 4096; pc += 4) {
      if (pc < module->code_high && !cunwind_find_function(&engine->modules, &pages, pc, &function)) return pc;
    }
  }
  return 0;
}

__attribute__((noinline)) static void *here(void) { return __builtin_return_address(0); }

// By itself libunwind guesses by the frame pointer, and takes an unknown register for 0.
void cunwind_check_stepper_traps(int unused) {
  (void)unused;
  cunwind_engine *engine = cunwind_test_settings_now().wants_libunwind ? cunwind_test_engine(27) : NULL;
  if (!engine) return;
  cunwind_engine_refresh_images(engine);
  cunwind_unwinder *unwinder = &engine->unwinder;
  cunwind_library *library = unwinder->library;
  unwinder->copy = engine->helper.copy;
  engine->helper.copy->low = 0x7e0000000000ull;
  engine->helper.copy->length = STACK_WORDS * 8;
  cunwind_registers from = {0}, to;
  for (int number = 0; number < CUNWIND_REGISTER_COUNT; number++) {
    cunwind_set_register(&from, number, engine->helper.copy->low + STACK_WORDS);
  }
  uint64_t uncovered = find_uncovered(engine);
  cunwind_set_register(&from, CUNWIND_PC, uncovered);
  if (EXPECT(library && uncovered)) {
    // Past the guard.
    EXPECT(cunwind_step_by_library(unwinder, &from, true, &to) == CUNWIND_STEP_NO_INFO);
    EXPECT(cunwind_step_by_cfi(unwinder, &from, true, &to) == CUNWIND_STEP_NO_INFO);
  }
  // This function has a frame pointer, and needs it from its prologue on.
  from.known = 1ull << CUNWIND_SP | 1ull << CUNWIND_PC;
  from.value[CUNWIND_PC] = (uint64_t)(uintptr_t)__builtin_extract_return_addr(here());
  cunwind_step by_library = library ? cunwind_step_by_library(unwinder, &from, false, &to) : CUNWIND_STEP_OK;
  cunwind_test_say("libunwind: %d", by_library);
  EXPECT(by_library == CUNWIND_STEP_NO_INFO || by_library == CUNWIND_STEP_UNKNOWN_REGISTER);
  EXPECT(cunwind_step_by_cfi(unwinder, &from, false, &to) == CUNWIND_STEP_UNKNOWN_REGISTER);
  cunwind_engine_destroy(engine);
}

bool cunwind_test_steps_out_of_stub(const char *library) {
  void *handle = dlopen(library, RTLD_NOW);
  const uint8_t *code = handle ? dlsym(handle, "call_through_stub") : NULL;
  cunwind_engine *engine = code ? cunwind_test_engine(27) : NULL;
  if (!engine) return false;
  // "call stub": E8 and the distance.
  while (*code != 0xe8) code++;
  int32_t distance;
  memcpy(&distance, code + 1, sizeof distance);
  uint64_t caller = (uint64_t)(uintptr_t)(code + 5), stub = caller + (uint64_t)(int64_t)distance;
  uint64_t outer = (uint64_t)(uintptr_t)__builtin_extract_return_addr(here());
  cunwind_engine_refresh_images(engine);
  cunwind_unwinder *unwinder = &engine->unwinder;
  unwinder->copy = engine->helper.copy;
  engine->helper.copy->low = 0x7e0000000000ull;
  engine->helper.copy->length = STACK_WORDS * 8;
  // The stub's return address, and further out the record of its caller's frame pointer.
  uint64_t record[2] = {0, outer};
  memcpy(engine->helper.copy->bytes, &caller, sizeof caller);
  memcpy(engine->helper.copy->bytes + 128, record, sizeof record);
  cunwind_registers from = {0}, to = {0};
  for (int number = 0; number < CUNWIND_REGISTER_COUNT; number++) cunwind_set_register(&from, number, 0);
  cunwind_set_register(&from, CUNWIND_SP, engine->helper.copy->low);
  cunwind_set_register(&from, CUNWIND_FP, engine->helper.copy->low + 128);
  cunwind_set_register(&from, CUNWIND_PC, stub);
  uint64_t start, end;
  bool is_proven = false;
  bool is_right = !cunwind_function_at(unwinder, stub, &start, &end) &&
                  cunwind_step_by_call_site(unwinder, &from, true, &to, &is_proven) == CUNWIND_STEP_OK && is_proven &&
                  to.value[CUNWIND_PC] == caller && to.value[CUNWIND_SP] == engine->helper.copy->low + 8;
  cunwind_engine_destroy(engine);
  dlclose(handle);
  return is_right;
}

#if defined(__x86_64__)

// Functions without unwind information. At the label each has so many words below its return address.
__asm__(
    ".text\n"
    ".type cunwind_test_bare_functions, @function\n"
    "cunwind_test_bare_functions:\n"
    "  push %rbx\n"
    "  sub $64, %rsp\n"
    "cunwind_test_bare_loop: rdtsc\n"  // As an assembler writes it: a leaf that uses no frame pointer.
    "  cmp %rdi, %rax\n"
    "  jb cunwind_test_bare_loop\n"
    "  add $64, %rsp\n"
    "  pop %rbx\n"
    "  ret\n"
    "  push %rbp\n"
    "cunwind_test_bare_exit: test %rdi, %rdi\n"  // The way out is the jump.
    "  je 2f\n"
    "  mov %rbp, 8(%rsp)\n"
    "  jmp cunwind_test_bare_exit\n"
    "2: pop %rbp\n"
    "  ret\n"
    "cunwind_test_bare_leave: call *%rsi\n"
    "  leave\n"
    "  ret\n"
    "cunwind_test_bare_end: call *%rsi\n"  // It does not return, and the next function begins.
    "  push %rbp\n"
    "  mov %rsp, %rbp\n"
    "  pop %rbp\n"
    "  ret\n"
    "cunwind_test_bare_jump: jmp *%rax\n"
    ".size cunwind_test_bare_functions, . - cunwind_test_bare_functions\n");
void cunwind_test_bare_loop(void);
void cunwind_test_bare_exit(void);
void cunwind_test_bare_leave(void);
void cunwind_test_bare_end(void);
void cunwind_test_bare_jump(void);

/// `slot`: the word with the return address, from the stack pointer on; -1: it cannot be found.
typedef struct bare_function {
  void (*code)(void);
  int slot;
  bool needs_frame_pointer, restores_frame_pointer;
} bare_function;

void cunwind_check_code_steps(int unused) {
  (void)unused;
  enum { RECORD = 6, SAVED = 4711 };
  const bare_function functions[] = {{cunwind_test_bare_loop, 9, false, false},
                                     {cunwind_test_bare_exit, 1, false, true},
                                     {cunwind_test_bare_leave, RECORD + 1, true, true},
                                     {cunwind_test_bare_end, -1, false, false},
                                     {cunwind_test_bare_jump, -1, false, false}};
  cunwind_engine *engine = cunwind_test_engine(27);
  if (!EXPECT(engine)) return;
  cunwind_engine_refresh_images(engine);
  cunwind_unwinder *unwinder = &engine->unwinder;
  unwinder->copy = engine->helper.copy;
  engine->helper.copy->low = 0x7e0000000000ull;
  engine->helper.copy->length = STACK_WORDS * 8;
  uint64_t outer = (uint64_t)(uintptr_t)__builtin_extract_return_addr(here());
  for (size_t index = 0; index < sizeof functions / sizeof *functions; index++) {
    const bare_function *function = &functions[index];
    for (uint64_t word = 0; word < STACK_WORDS; word++) {
      // Words of dead frames are everywhere else: the same call's.
      uint64_t value = (int)word == function->slot ? outer : word == RECORD || word == 0 ? SAVED : outer;
      memcpy(engine->helper.copy->bytes + word * 8, &value, sizeof value);
    }
    cunwind_registers from = {0}, to = {0};
    cunwind_set_register(&from, CUNWIND_PC, (uint64_t)(uintptr_t)function->code);
    cunwind_set_register(&from, CUNWIND_SP, engine->helper.copy->low);
    cunwind_step without = cunwind_step_by_code(unwinder, &from, false, &to);
    EXPECT((without == CUNWIND_STEP_OK) == (function->slot >= 0 && !function->needs_frame_pointer));
    EXPECT(cunwind_is_known(&to, CUNWIND_FP) == (without == CUNWIND_STEP_OK && function->restores_frame_pointer));
    cunwind_set_register(&from, CUNWIND_FP, engine->helper.copy->low + RECORD * 8);
    cunwind_step with = cunwind_step_by_code(unwinder, &from, false, &to);
    cunwind_test_say("%zu: %d, %d; ", index, without, with);
    EXPECT((with == CUNWIND_STEP_OK) == (function->slot >= 0));
    if (with != CUNWIND_STEP_OK) continue;
    EXPECT(to.value[CUNWIND_PC] == outer);
    EXPECT(to.value[CUNWIND_SP] == engine->helper.copy->low + 8 * ((uint64_t)function->slot + 1));
    if (function->restores_frame_pointer) EXPECT(to.value[CUNWIND_FP] == SAVED);
  }
  cunwind_engine_destroy(engine);
}

#else

// Functions without unwind information are crossed by their frame records only. These three have it. Each has its frame
// pointer above the stack pointer: by 32 bytes, by a vector, and by as many pages as a loop has touched.
__asm__(
    ".text\n"
    ".type cunwind_test_framed_functions, %function\n"
    "cunwind_test_framed_functions:\n"
    "  .cfi_startproc\n"
    "  stp x29, x30, [sp, #-16]!\n"
    "  mov x29, sp\n"
    "  sub sp, sp, #32\n"
    "  bl cunwind_test_framed_functions\n"
    "cunwind_test_plain_frame:\n"
    "  add sp, sp, #32\n"
    "  ldp x29, x30, [sp], #16\n"
    "  ret\n"
    "  .cfi_endproc\n"
    "  .cfi_startproc\n"
    "  stp x29, x30, [sp, #-16]!\n"
    "  mov x29, sp\n"
    "  .inst 0x043f57ff\n"  // addvl sp, sp, #-1
    "  bl cunwind_test_framed_functions\n"
    "cunwind_test_vector_frame:\n"
    "  .inst 0x043f503f\n"  // addvl sp, sp, #1
    "  ldp x29, x30, [sp], #16\n"
    "  ret\n"
    "  .cfi_endproc\n"
    "  .cfi_startproc\n"
    "  stp x29, x30, [sp, #-16]!\n"
    "  mov x29, sp\n"
    "  sub x12, sp, #128, lsl #12\n"
    "1: sub sp, sp, #16, lsl #12\n"
    "  str xzr, [sp, #1024]\n"
    "  cmp sp, x12\n"
    "  b.ne 1b\n"
    "  bl cunwind_test_framed_functions\n"
    "cunwind_test_paged_frame:\n"
    "  add sp, sp, #128, lsl #12\n"
    "  ldp x29, x30, [sp], #16\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size cunwind_test_framed_functions, . - cunwind_test_framed_functions\n");
void cunwind_test_plain_frame(void);
void cunwind_test_vector_frame(void);
void cunwind_test_paged_frame(void);

void cunwind_check_code_steps(int unused) {
  (void)unused;
  void (*const places[])(void) = {cunwind_test_plain_frame, cunwind_test_vector_frame, cunwind_test_paged_frame};
  cunwind_engine *engine = cunwind_test_engine(27);
  if (!EXPECT(engine)) return;
  cunwind_engine_refresh_images(engine);
  cunwind_unwinder *unwinder = &engine->unwinder;
  unwinder->copy = engine->helper.copy;
  engine->helper.copy->low = 0x7e0000000000ull;
  // Words of dead frames are everywhere, so each place looks like a frame record.
  engine->helper.copy->length = CUNWIND_MAX_STACK_BYTES;
  uint64_t outer = (uint64_t)(uintptr_t)__builtin_extract_return_addr(here());
  for (uint64_t at = 0; at < CUNWIND_MAX_STACK_BYTES; at += sizeof outer)
    memcpy(engine->helper.copy->bytes + at, &outer, sizeof outer);
  for (size_t index = 0; index < sizeof places / sizeof *places; index++) {
    cunwind_registers from = {0};
    uint64_t found = 0;
    cunwind_set_register(&from, CUNWIND_PC, (uint64_t)(uintptr_t)places[index]);
    cunwind_set_register(&from, CUNWIND_SP, engine->helper.copy->low);
    cunwind_step step = cunwind_infer_frame_pointer(unwinder, &from, false, &found);
    cunwind_test_say("%zu: %d; ", index, step);
    EXPECT(step == (index == 0 ? CUNWIND_STEP_OK : CUNWIND_STEP_UNKNOWN_REGISTER));
    EXPECT(found == (index == 0 ? engine->helper.copy->low + 32 : 0));
  }
  cunwind_engine_destroy(engine);
}

#endif
