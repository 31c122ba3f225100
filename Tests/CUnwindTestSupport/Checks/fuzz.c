// Damaged stacks: no input may crash the unwinder or keep it busy.

#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "Checks/random_numbers.h"
#include "Engine/engine.h"
#include "Support/checks.h"
#include "System/raw_system_call.h"

/// The number of real stacks that are changed, and the size of each: small, so that a million take a minute or two.
#define SEEDS 6
#define SEED_BYTES 4096u

typedef struct seed {
  cunwind_registers registers;
  uint64_t low;
  uint64_t length;
  uint8_t bytes[SEED_BYTES];
} seed;

// By that engine: a copy of the stack is in its buffers.
static bool take_seed(cunwind_engine *engine, cunwind_test_posture posture, uint32_t depth, seed *seed) {
  static cunwind_stack stack;
  cunwind_capture_info info;
  cunwind_test_thread *thread_state = cunwind_test_thread_start(posture, depth);
  if (!thread_state) return false;
  cunwind_thread *thread = cunwind_thread_open(cunwind_test_thread_tid(thread_state), CUNWIND_ALL_THREAD_FILES, NULL);
  bool is_taken = thread && cunwind_capture_stop(engine, thread, &stack, &info) == CUNWIND_OK;
  if (is_taken) {
    cunwind_registers_from_ptrace(&seed->registers, &engine->helper.request->registers);
    seed->low = engine->helper.copy->low;
    seed->length = engine->helper.copy->length < SEED_BYTES ? engine->helper.copy->length : SEED_BYTES;
    memcpy(seed->bytes, engine->helper.copy->bytes, seed->length);
  }
  cunwind_thread_close(thread);
  cunwind_test_thread_stop(thread_state);
  return is_taken;
}

// Returns a value that an unwinder may follow: an address in code or on the stack, or near one.
static uint64_t tempting_value(const cunwind_engine *engine, const seed *seed, uint64_t *random) {
  uint64_t draw = cunwind_test_random(random), offset = cunwind_test_random(random);
  const cunwind_module *module = &engine->modules.list[draw / 16 % engine->modules.count];
  switch (draw % 8) {
    case 0:
      return offset;
    case 1:
      return offset % 4096;
    case 2:
      return module->image.low + offset % (module->image.high - module->image.low);
    case 3:
    case 4:
      return module->code_high > module->code_low ? module->code_low + offset % (module->code_high - module->code_low)
                                                  : 0;
    case 5:
      return seed->low + offset % seed->length;
    case 6:
      return (seed->low + offset % seed->length) & ~15ull;
    default:
      return seed->low + seed->length + offset % 65536;
  }
}

// Returns whether the unwinder kept its promises for a stack.
static bool is_sound(const cunwind_stack *stack) {
  if (stack->frame_count == 0 || stack->frame_count > CUNWIND_MAX_FRAMES) return false;
  if (stack->end > CUNWIND_END_TOO_LONG || stack->omitted_at > stack->frame_count) return false;
  for (uint32_t index = 1; index < stack->frame_count; index++) {
    const cunwind_frame *callee = &stack->frames[index - 1], *frame = &stack->frames[index];
    bool may_jump = callee->is_signal_frame || index == stack->omitted_at;
    if (!may_jump && frame->stack_pointer < callee->stack_pointer) return false;
    if (frame->source > CUNWIND_FRAME_POINTER) return false;
  }
  return true;
}

static bool is_alike(const cunwind_stack *one, const cunwind_stack *other) {
  // The clock ended one of them, as on a busy machine: its frames are the beginning only.
  if (one->end == CUNWIND_END_TOO_LONG || other->end == CUNWIND_END_TOO_LONG) return true;
  bool is_alike = one->end == other->end && one->frame_count == other->frame_count;
  for (uint32_t index = 0; is_alike && index < one->frame_count; index++) {
    const cunwind_frame *left = &one->frames[index], *right = &other->frames[index];
    is_alike = left->address == right->address && left->stack_pointer == right->stack_pointer &&
               left->is_exact == right->is_exact && left->source == right->source;
  }
  return is_alike;
}

// Returns whether our own stepper alone unwinds the same stack.
//
// Other tests map memory and have functions linked meanwhile, which both read where the copied stack leads. So a difference
// counts only if it is there each time, and if nothing changed around it.
static bool is_unwound_alike(cunwind_unwinder *unwinder, const cunwind_registers *registers,
                             const cunwind_stack *stack) {
  static cunwind_stack own, again;
  cunwind_library *library = unwinder->library;
  if (!library) return true;
  for (int attempt = 0; attempt < 3; attempt++) {
    unwinder->library = NULL;
    cunwind_unwind(unwinder, registers, &own);
    unwinder->library = library;
    if (is_alike(&own, stack)) return true;
    cunwind_unwind(unwinder, registers, &again);
    if (!is_alike(&again, stack)) return true;
  }
  uint32_t place = 0;
  while (place + 1 < own.frame_count && place + 1 < stack->frame_count &&
         own.frames[place].address == stack->frames[place].address)
    place++;
  fprintf(stderr, "alone: end %d, %u frames, %llx (%d); with libunwind: end %d, %u frames, %llx (%d) at %u\n", own.end,
          own.frame_count, COUNT(own.frames[place].address), own.frames[place].source, stack->end, stack->frame_count,
          COUNT(stack->frames[place].address), stack->frames[place].source, place);
  return false;
}

// Each with libunwind and by the built-in stepper alone. A damaged stack leads them through sound tables, so they agree.
void cunwind_check_damaged_stacks(int unused) {
  (void)unused;
  static const struct {
    cunwind_test_posture posture;
    uint32_t depth;
  } origins[SEEDS] = {
      {CUNWIND_TEST_SPINNING, 1},    {CUNWIND_TEST_SPINNING, 8},  {CUNWIND_TEST_IN_SIGNAL_HANDLER, 2},
      {CUNWIND_TEST_CALLED_NULL, 1}, {CUNWIND_TEST_IN_ALLOCA, 3}, {CUNWIND_TEST_IN_ALTERNATE_STACK, 1},
  };
  static seed seeds[SEEDS];
  static cunwind_stack stack;
  cunwind_test_settings settings = cunwind_test_settings_now();
  const uint64_t images = 20000 * settings.rounds;
  uint64_t broken = 0, complete = 0, disagreements = 0, frames = 0, slowest = 0, random = settings.seed * 2 + 1;
  cunwind_engine *engine = cunwind_test_engine(27);
  if (!EXPECT(engine)) return;
  cunwind_engine_refresh_images(engine);
  EXPECT((engine->unwinder.library != NULL) == settings.wants_libunwind);
  for (int index = 0; index < SEEDS; index++) {
    if (!EXPECT(take_seed(engine, origins[index].posture, origins[index].depth, &seeds[index]))) return;
  }
  engine->unwinder.copy = engine->helper.copy;
  for (uint64_t image = 0; image < images; image++) {
    const seed *from = &seeds[cunwind_test_random(&random) % SEEDS];
    cunwind_registers registers = from->registers;
    engine->helper.copy->low = from->low;
    engine->helper.copy->length = 8 + cunwind_test_random(&random) % (from->length - 8);
    engine->helper.copy->outer_length = 0;
    memcpy(engine->helper.copy->bytes, from->bytes, engine->helper.copy->length);
    uint64_t changes = cunwind_test_random(&random) % 24;
    for (uint64_t change = 0; change < changes; change++) {
      uint64_t value = tempting_value(engine, from, &random),
               place = cunwind_test_random(&random) % (engine->helper.copy->length - 7);
      if (change % 2) place &= ~7ull;
      memcpy(engine->helper.copy->bytes + place, &value, sizeof value);
    }
    for (uint64_t change = 0, count = cunwind_test_random(&random) % 4; change < count; change++) {
      cunwind_set_register(&registers, (int)(cunwind_test_random(&random) % CUNWIND_REGISTER_COUNT),
                           tempting_value(engine, from, &random));
    }
    // As after a read: only SP and PC.
    if (cunwind_test_random(&random) % 4 == 0) registers.known = 1ull << CUNWIND_SP | 1ull << CUNWIND_PC;
    uint64_t begin = cunwind_now();
    cunwind_unwind(&engine->unwinder, &registers, &stack);
    uint64_t took = cunwind_now() - begin;
    if (!is_unwound_alike(&engine->unwinder, &registers, &stack)) disagreements++;
    if (took > slowest) slowest = took;
    complete += stack.end == CUNWIND_END_COMPLETE;
    frames += stack.frame_count;
    broken += !is_sound(&stack);
  }
  cunwind_engine_destroy(engine);
  cunwind_test_say("STALLWATCH_FUZZ_SEED=%llu: %llu frames, %llu complete, %llu broken, %llu differ, slowest %llu us",
                   COUNT(settings.seed), COUNT(frames), COUNT(complete), COUNT(broken), COUNT(disagreements),
                   COUNT(slowest / 1000));
  EXPECT(disagreements == 0 && broken == 0);
  // Some stacks have several frames, and some are damaged.
  EXPECT(frames > images && complete < images);
}
