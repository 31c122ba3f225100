// Capture by perf event: the kernel copies the user registers and stack of a running thread in the interrupt of a clock
// event (perf_event_open(2), PERF_SAMPLE_REGS_USER and PERF_SAMPLE_STACK_USER).
//
// No other method sees a thread during a system call that computes or copies for long, or leaves such a call
// undisturbed. A stop or a signal makes copy_file_range(2), sendfile(2), getrandom(2) and read(2) of /dev/zero return
// early (measured: splice_from_pipe_next, read_iter_zero and others check signal_pending()). The method needs
// permission to sample the kernel, which containers lack by default.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <asm/perf_regs.h>
#endif

#include "Engine/engine.h"
#include "System/raw_system_call.h"

/// The CPU time before the first interrupt (10 us, the minimum: kernel/events/core.c, perf_swevent_start_hrtimer).
#define PERIOD_NANOSECONDS 10000u
/// The interval at which the caller reads the helper's progress (2 ms).
#define POLL_NANOSECONDS 2000000ull
/// The size of a record has 16 bits, and the record also holds the registers and lengths.
#define STACK_BYTES (65536u - 1024u)
/// The size of the ring after its control page: more than one record, and a power of two for pages of 4 to 64 KiB.
#define RING_BYTES (128u * 1024u)

#if defined(__x86_64__)
/// The DWARF number of each sampled register, in the order of the kernel's numbers (asm/perf_regs.h).
static const uint8_t sampled[] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15};
/// AX to IP, and R8 to R15.
#define SAMPLED_REGISTERS (0x1ffull | 0xffull << PERF_REG_X86_R8)
#define NUMBER_OF_SAMPLED(index) sampled[index]
#else
/// X0 to X29, LR, SP, PC: the kernel's numbers are DWARF's.
#define SAMPLED_REGISTERS 0x1ffffffffull
#define NUMBER_OF_SAMPLED(index) (index)
#endif

/// The beginning of a sample, as the kernel writes it: header, ABI, registers, length of the stack.
typedef struct sample {
  struct perf_event_header header;
  uint64_t abi;
  uint64_t registers[CUNWIND_REGISTER_COUNT];
  uint64_t stack_bytes;  ///< The number of bytes that follow. After them, the number of readable ones.
} sample;

CUNWIND_BARE static bool is_error(long value) { return value < 0 && value >= -4095; }

CUNWIND_BARE int cunwind_sample_helper(void *context) {
  cunwind_stop_request *request = context;
  cunwind_sample_request *sample = &request->sample;
  long event = cunwind_raw(SYS_perf_event_open, (long)&sample->event_attributes, request->order.tid, -1, -1,
                           PERF_FLAG_FD_CLOEXEC, 0);
  sample->event = event;
  uint32_t opens = CUNWIND_SAMPLER_OPENS;
  if (!__atomic_compare_exchange_n(&sample->progress, &opens, CUNWIND_SAMPLER_MAPS, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    if (!is_error(event)) cunwind_raw(SYS_close, event, 0, 0, 0, 0, 0);
    sample->event = -ECANCELED;
    return 0;
  }
  if (is_error(event)) return 0;
  sample->ring = cunwind_raw(SYS_mmap, 0, (long)sample->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
  if (is_error(sample->ring)) return 0;
  __atomic_store_n(&sample->progress, CUNWIND_SAMPLER_WAITS, __ATOMIC_RELEASE);
  // One interrupt: after it the event is disabled, and the wait ends.
  long failed = cunwind_raw(SYS_ioctl, event, PERF_EVENT_IOC_REFRESH, 1, 0, 0, 0);
  struct timespec bound = cunwind_timespec(CUNWIND_SAMPLE_TIMEOUT_NANOSECONDS);
  struct pollfd wait;
  wait.fd = (int)event;
  wait.events = POLLIN;
  wait.revents = 0;
  if (!failed) cunwind_raw(SYS_ppoll, (long)&wait, 1, (long)&bound, 0, 0, 0);
  return 0;
}

// Returns the ring's first sample, or NULL. The ring is new, so no record wraps around.
static const sample *find_sample(const uint8_t *ring, size_t page) {
  const struct perf_event_mmap_page *control = (const void *)ring;
  uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
  const uint8_t *records = ring + page;
  for (uint64_t at = 0; at + sizeof(struct perf_event_header) <= head && head <= RING_BYTES;) {
    const struct perf_event_header *header = (const void *)(records + at);
    if (header->size < sizeof *header || header->size > head - at) return NULL;
    if (header->type == PERF_RECORD_SAMPLE && header->size > sizeof(sample)) return (const sample *)header;
    at += header->size;
  }
  return NULL;
}

static cunwind_status take_sample(const sample *from, cunwind_stack_copy *copy, cunwind_registers *registers,
                                  cunwind_capture_info *info) {
  uint64_t size = from->stack_bytes, readable = 0;
  if (from->abi != PERF_SAMPLE_REGS_ABI_64 || size > STACK_BYTES ||
      from->header.size < sizeof *from + size + sizeof readable)
    return CUNWIND_NOT_IN_CALL;
  registers->known = 0;
  for (int index = 0; index < CUNWIND_REGISTER_COUNT; index++)
    cunwind_set_register(registers, NUMBER_OF_SAMPLED(index), from->registers[index]);
  bool is_in_kernel = (from->header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
  if (!is_in_kernel || !cunwind_call_before(registers->value[CUNWIND_PC], registers, &info->system_call))
    return CUNWIND_NOT_IN_CALL;
  const uint8_t *stack = (const uint8_t *)(from + 1);
  memcpy(&readable, stack + size, sizeof readable);
  if (readable > size) return CUNWIND_NOT_IN_CALL;
  info->is_in_call = true;
  for (int index = 0; index < 6; index++) info->arguments[index] = registers->value[cunwind_argument_registers[index]];
  memcpy(copy->bytes, stack, readable);
  copy->low = registers->value[CUNWIND_SP];
  copy->length = readable;
  copy->outer_low = copy->outer_length = 0;
  copy->has_gap = false;
  return CUNWIND_OK;
}

// The helper shared memory and descriptors with this process, so the event and its ring outlive it.
void cunwind_release_sample(cunwind_sample_request *sample) {
  if (sample->ring_bytes == 0) return;
  if (!is_error(sample->ring)) munmap((void *)sample->ring, sample->ring_bytes);
  if (!is_error(sample->event)) close((int)sample->event);
  sample->ring_bytes = 0;
}

// Waits for the helper: for the event, its ring and its sample. True: the helper has ended.
static bool wait_for_sampler(cunwind_stop_request *request) {
  uint32_t progress = CUNWIND_SAMPLER_OPENS;
  uint64_t now = cunwind_now(), deadline = now + CUNWIND_OPEN_TIMEOUT_NANOSECONDS;
  while (now < deadline) {
    uint64_t left = deadline - now;
    if (cunwind_wait_until_gone(&request->alive, left < POLL_NANOSECONDS ? left : POLL_NANOSECONDS)) return true;
    now = cunwind_now();
    uint32_t latest = __atomic_load_n(&request->sample.progress, __ATOMIC_ACQUIRE);
    if (latest == progress) continue;
    progress = latest;
    deadline = now + CUNWIND_SAMPLE_TIMEOUT_NANOSECONDS;
    // The helper waits equally long for the sample, and then ends by itself.
    if (progress == CUNWIND_SAMPLER_WAITS) deadline += CUNWIND_HELPER_GRACE_NANOSECONDS;
  }
  return false;
}

// Lets the helper open the event and wait for its sample. False: the helper did not end in time. It was killed, unless it
// still opens the event: after a kill the event would stay open.
static bool run_sampler(cunwind_engine *engine, pid_t tid, size_t ring_bytes) {
  cunwind_helper_memory *helper = &engine->sampler;
  cunwind_stop_request *request = helper->request;
  if (!cunwind_helper_has_ended(helper, 0)) return false;
  cunwind_release_sample(&request->sample);
  request->order.tid = tid;
  request->phase = CUNWIND_HELPER_WAITS;
  request->sample =
      (cunwind_sample_request){.event_attributes = {.size = sizeof request->sample.event_attributes,
                                                    .type = PERF_TYPE_SOFTWARE,
                                                    .config = PERF_COUNT_SW_CPU_CLOCK,
                                                    .sample_period = PERIOD_NANOSECONDS,
                                                    .sample_type = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
                                                    .sample_regs_user = SAMPLED_REGISTERS,
                                                    .sample_stack_user = STACK_BYTES,
                                                    .wakeup_events = 1,
                                                    .disabled = 1},
                               .ring_bytes = ring_bytes,
                               .event = -ECANCELED,
                               .ring = -1};
  long made = cunwind_make_helper(helper, cunwind_sample_helper);
  if (made < 0) {
    request->sample.event = made;
    return true;
  }
  helper->unreaped = (pid_t)made;
  helper->left_until = cunwind_now() + CUNWIND_OPEN_TIMEOUT_NANOSECONDS + CUNWIND_RELEASE_TIMEOUT_NANOSECONDS;
  if (wait_for_sampler(request)) return cunwind_helper_has_ended(helper, CUNWIND_HELPER_GRACE_NANOSECONDS);
  uint32_t opens = CUNWIND_SAMPLER_OPENS;
  if (__atomic_compare_exchange_n(&request->sample.progress, &opens, CUNWIND_SAMPLER_CANCELED, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE))
    return false;
  // Kill it at once: while its mmap(2) waits, page faults of the app's threads wait behind it.
  helper->left_until = 0;
  cunwind_helper_has_ended(helper, CUNWIND_HELPER_GRACE_NANOSECONDS);
  return false;
}

static cunwind_status status_of(long error) {
  if (error == -ESRCH) return CUNWIND_NO_SUCH_THREAD;
  // ENOENT, EOPNOTSUPP: the machine has no such event.
  bool is_refused = error == -EPERM || error == -EACCES || error == -ENOSYS || error == -ENOENT || error == -EOPNOTSUPP;
  return is_refused ? CUNWIND_REFUSED : CUNWIND_FAILED;
}

static cunwind_status copy_sampled(cunwind_engine *engine, cunwind_thread *thread, const cunwind_stack_copy **copy,
                                   cunwind_registers *registers, cunwind_capture_info *info) {
  info->error = EPERM;
  if (cunwind_call_is_deadly(CUNWIND_CALL_PERF_EVENT)) return CUNWIND_REFUSED;
  info->error = 0;
  if (!cunwind_thread_is_there(thread)) return CUNWIND_NO_SUCH_THREAD;
  cunwind_stack_copy_touch(engine->helper.copy);
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (!run_sampler(engine, thread->tid, page + RING_BYTES)) {
    uint32_t progress = __atomic_load_n(&engine->sampler.request->sample.progress, __ATOMIC_ACQUIRE);
    if (engine->sampler.unreaped == 0) cunwind_release_sample(&engine->sampler.request->sample);
    return progress == CUNWIND_SAMPLER_MAPS ? CUNWIND_TIMED_OUT : CUNWIND_NOT_SAMPLED;
  }
  cunwind_sample_request *answer = &engine->sampler.request->sample;
  if (is_error(answer->event)) {
    info->error = (int)-answer->event;
    return status_of(answer->event);
  }
  cunwind_status status = CUNWIND_FAILED;
  if (is_error(answer->ring)) {
    info->error = (int)-answer->ring;
  } else {
    const sample *found = find_sample((const uint8_t *)answer->ring, page);
    status = found ? take_sample(found, engine->helper.copy, registers, info) : CUNWIND_NOT_SAMPLED;
  }
  cunwind_release_sample(answer);
  *copy = engine->helper.copy;
  return status;
}

cunwind_status cunwind_capture_perf(cunwind_engine *engine, cunwind_thread *thread, cunwind_stack *stack,
                                    cunwind_capture_info *info) {
  return cunwind_capture_by(copy_sampled, engine, thread, stack, info);
}
