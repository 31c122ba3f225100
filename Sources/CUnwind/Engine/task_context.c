

#include "Engine/task_context.h"

#include "Memory/guarded_memory.h"
#include "System/raw_system_call.h"

// The fields of a task, as words from its beginning, in Swift 6.2 and 6.3 on 64-bit platforms (swift/ABI/Task.h,
// TaskPrivate.h). Calibration checks each of them against a task that it knows.
#define TASK_FLAGS_AND_ID 4    // Job::Flags, Job::Id: the low half of the task's id is the high half of the word.
#define TASK_STATUS_RECORD 13  // ActiveTaskStatus::Record, the innermost of a list.
#define TASK_LOCALS 17         // TaskLocal::Storage::head, the innermost of a list.
#define TASK_ID_HIGH 18        // PrivateStorage::Id: the high half of the task's id.
#define TASK_WORDS 19

// JobKind::Task (swift/ABI/MetadataValues.h), in the low byte of the flags.
#define JOB_KIND_MASK 0xffu
#define JOB_KIND_TASK 0u

// A status record is { flags, parent, ... }; that of a name has the kind 6 in the low byte of its flags, and the address
// of a C string as its third word (swift/ABI/TaskStatus.h and MetadataValues.h of Swift 6.2 and 6.3).
#define RECORD_KIND_MASK 0xffu
#define RECORD_KIND_NAME 6u

// An item of a list of task-local values is { next, key, type, value }. The low bits of `next` tell its kind.
// - Swift 6.3: a set third bit marks an item of one word. It only leads to the list of the parent task, or with the
//   second bit set, too, it ends the search (libswift_Concurrency: TaskLocal::MarkerItem, StopLookupScope,
//   swift_task_localValueGet).
// - Before: there are two bits, and an item without a key leads to the list of the parent (swift/ABI/TaskLocal.h).
// Items are aligned to 16 bytes, so the same reading serves for both.
#define ITEM_NEXT 0
#define ITEM_KEY 1
#define ITEM_VALUE 3
#define ITEM_KIND_MASK 7ull
#define ITEM_IS_MARKER 4ull
#define ITEM_ENDS_SEARCH 6ull

// OpenTelemetry's thread context record begins: trace id, span id, valid, trace flags, attributes' size (OTEP 4947).
#define RECORD_HEAD_BYTES 28u
#define RECORD_VALID 24
#define RECORD_SIZE 26

// The distance between two entries of a thread's vector of TLS blocks.
#define BLOCK_ENTRY_BYTES 16u

static const cunwind_context_layout *published;

void cunwind_publish_context_layout(const cunwind_context_layout *layout) {
  __atomic_store_n(&published, layout, __ATOMIC_RELEASE);
}

const cunwind_context_layout *cunwind_context_layout_now(void) { return __atomic_load_n(&published, __ATOMIC_ACQUIRE); }

CUNWIND_BARE void cunwind_context_clear(cunwind_context *context, cunwind_context_status status) {
  context->status = (uint8_t)status;
  context->has_task = false;
  context->task_name_is_cut = false;
  context->task_name_length = 0;
  context->payload_length = 0;
  context->record_length = 0;
  context->task_id = 0;
}

CUNWIND_BARE static bool read_word(uint64_t address, uint64_t *word) {
  return address != 0 && address % sizeof *word == 0 && cunwind_guarded_read_all(address, word, sizeof *word);
}

// Returns the address of the payload that is bound to our key in the list, 0 if there is none.
CUNWIND_BARE static uint64_t find_bound(const cunwind_context_layout *layout, uint64_t head) {
  uint64_t at = head;
  // A damaged list may be circular: it ends at the bound.
  for (int count = 0; at != 0 && at % sizeof at == 0 && count < CUNWIND_MAX_TASK_LOCALS; count++) {
    uint64_t item[4];
    size_t got = cunwind_guarded_read(at, item, sizeof item);
    if (got < sizeof *item || (item[ITEM_NEXT] & ITEM_ENDS_SEARCH) == ITEM_ENDS_SEARCH) return 0;
    if ((item[ITEM_NEXT] & ITEM_IS_MARKER) == 0) {
      // An item without a value may end at the end of a page.
      if (got < 2 * sizeof *item) return 0;
      if (item[ITEM_KEY] == layout->key) {
        bool has_value = got == sizeof item && item[ITEM_VALUE] != 0;
        return has_value ? item[ITEM_VALUE] + layout->payload_offset : 0;
      }
    }
    at = item[ITEM_NEXT] & ~ITEM_KIND_MASK;
  }
  return 0;
}

CUNWIND_BARE static void copy_name(cunwind_context *context, uint64_t address) {
  size_t got = cunwind_guarded_read(address, context->task_name, sizeof context->task_name);
  size_t length = 0;
  while (length < got && context->task_name[length] != 0) length++;
  context->task_name_is_cut = length == got;
  context->task_name_length = (uint16_t)length;
}

// Other threads may add records to the task. If the list has changed meanwhile, it has no name rather than a wrong one.
CUNWIND_BARE static void take_name(cunwind_context *context, uint64_t task, uint64_t first) {
  uint64_t at = first, now = 0;
  for (int count = 0; at != 0 && at % sizeof at == 0 && count < CUNWIND_MAX_TASK_RECORDS; count++) {
    uint64_t record[3];
    if (!cunwind_guarded_read_all(at, record, sizeof record)) return;
    if ((record[0] & RECORD_KIND_MASK) == RECORD_KIND_NAME) {
      copy_name(context, record[2]);
      break;
    }
    at = record[1];
  }
  if (!read_word(task + TASK_STATUS_RECORD * sizeof(uint64_t), &now) || now != first) context->task_name_length = 0;
}

// Returns the address of the payload that is bound in the current task, or outside of tasks on the thread; else 0.
CUNWIND_BARE static uint64_t take_task(cunwind_context *context, const cunwind_context_layout *layout,
                                       uint64_t pointer) {
  uint64_t task = 0, storage = 0, head = 0;
  if (layout->knows_tasks && read_word(pointer + (uint64_t)layout->task, &task) && task != 0) {
    uint64_t words[TASK_WORDS];
    if (task % sizeof task != 0 || !cunwind_guarded_read_all(task, words, sizeof words)) return 0;
    if ((words[TASK_FLAGS_AND_ID] & JOB_KIND_MASK) != JOB_KIND_TASK) return 0;
    context->has_task = true;
    context->task_id = words[TASK_FLAGS_AND_ID] >> 32 | words[TASK_ID_HIGH] << 32;
    if (layout->knows_task_names) take_name(context, task, words[TASK_STATUS_RECORD]);
    return find_bound(layout, words[TASK_LOCALS]);
  }
  bool is_outside = layout->knows_tasks && layout->knows_plain_locals;
  if (is_outside && read_word(pointer + (uint64_t)layout->plain_locals, &storage) && read_word(storage, &head))
    return find_bound(layout, head);
  return 0;
}

// The innermost of both: a scope notes the payload bound at its entry. If another is bound now, it is further inside.
CUNWIND_BARE static uint64_t innermost(const cunwind_context_layout *layout, uint64_t pointer, uint64_t bound) {
  uint64_t at = 0;
  cunwind_context_scope scope;
  if (!layout->knows_scopes || !read_word(pointer + (uint64_t)layout->scope, &at) || at == 0) return bound;
  if (!cunwind_guarded_read_all(at, &scope, sizeof scope) || scope.magic != CUNWIND_SCOPE_MAGIC) return bound;
  return bound == 0 || bound == scope.bound ? scope.payload : bound;
}

// The vector of blocks of glibc: pairs of words, of which the first one counts the others, the second has a generation, and
// number n the address of the block of module n (sysdeps/generic/dl-dtv.h; elf/dl-tls.c). A thread may not have had to
// extend its vector for a module that was loaded later.
CUNWIND_BARE uint64_t cunwind_thread_block(uint64_t pointer, uint64_t module) {
  uint64_t blocks = 0, count = 0, block = 0;
  if (!read_word(pointer + CUNWIND_DTV_OFFSET, &blocks) || !read_word(blocks - BLOCK_ENTRY_BYTES, &count)) return 0;
  if (module == 0 || module > count || !read_word(blocks + BLOCK_ENTRY_BYTES * module, &block)) return 0;
  return block == UINT64_MAX ? 0 : block;
}

CUNWIND_BARE static void take_record(cunwind_context *context, const cunwind_context_layout *layout, uint64_t pointer) {
  if (!layout->knows_record) return;
  uint64_t at = 0, block = cunwind_thread_block(pointer, layout->record_module);
  if (block == 0 || !read_word(block + layout->record, &at) || at == 0) return;
  if (!cunwind_guarded_read_all(at, context->record, RECORD_HEAD_BYTES)) return;
  if (context->record[RECORD_VALID] != 1) return;
  size_t size = context->record[RECORD_SIZE] | (size_t)context->record[RECORD_SIZE + 1] << 8;
  if (size > CUNWIND_THREAD_RECORD_BYTES - RECORD_HEAD_BYTES) size = CUNWIND_THREAD_RECORD_BYTES - RECORD_HEAD_BYTES;
  size_t got = size == 0 ? 0 : cunwind_guarded_read(at + RECORD_HEAD_BYTES, context->record + RECORD_HEAD_BYTES, size);
  context->record_length = (uint16_t)(RECORD_HEAD_BYTES + got);
}

CUNWIND_BARE void cunwind_read_context(cunwind_context *context, const cunwind_context_layout *layout,
                                       uint64_t pointer) {
  cunwind_context_clear(context, CUNWIND_CONTEXT_TAKEN);
  uint64_t bound = take_task(context, layout, pointer);
  uint64_t payload = innermost(layout, pointer, bound);
  if (payload != 0)
    context->payload_length = (uint16_t)cunwind_guarded_read(payload, context->payload, sizeof context->payload);
  take_record(context, layout, pointer);
}

// ---- Async callers --------------------------------------------------------------------------------------------------

CUNWIND_BARE static bool is_unchanged(const cunwind_async_frame *frame, uint64_t stack_pointer) {
  uint64_t words[2];
  uint64_t return_address;
  return stack_pointer <= frame->slot && cunwind_guarded_read_all(frame->slot, words, sizeof words) &&
         words[0] == frame->words[0] && words[1] == frame->words[1] &&
         cunwind_guarded_read_all(frame->return_slot, &return_address, sizeof return_address) &&
         return_address == frame->return_address;
}

CUNWIND_BARE void cunwind_read_async_chains(cunwind_async_walk *walk, uint64_t stack_pointer) {
  uint32_t total = 0;
  walk->has_moved = false;
  for (uint32_t index = 0; index < walk->frame_count; index++) {
    walk->counts[index] = 0;
    if (!is_unchanged(&walk->frames[index], stack_pointer)) walk->has_moved = true;
  }
  if (walk->has_moved) return;
  for (uint32_t index = 0; index < walk->frame_count; index++) {
    uint64_t at = walk->frames[index].words[0];
    // A damaged chain may be circular: it ends at the bound.
    while (at != 0 && at % sizeof at == 0 && total < CUNWIND_MAX_ASYNC_CALLERS) {
      cunwind_async_context *context = &walk->contexts[total];
      if (!cunwind_guarded_read_all(at, context, sizeof *context)) break;
      total++;
      walk->counts[index]++;
      at = context->parent;
    }
  }
}
