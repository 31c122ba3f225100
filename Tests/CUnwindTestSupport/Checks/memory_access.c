// Memory is read by each access, where a call is refused, too, and captures work with it; in child processes.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "Engine/engine.h"
#include "Support/checks.h"
#include "Support/seccomp_filter.h"
#include "System/raw_system_call.h"

/// The pages of the memory that is read, one of which is missing, and another page after them.
enum { PAGES = 40, MISSING = 30 };

static bool reads_what_is_there(void) {
  uint8_t *pages = mmap(NULL, PAGES * CUNWIND_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  static uint8_t copy[PAGES * CUNWIND_PAGE_BYTES];
  if (pages == MAP_FAILED) return false;
  for (size_t index = 0; index < PAGES * CUNWIND_PAGE_BYTES; index++)
    pages[index] = (uint8_t)(index * 31 + index / 4096);
  if (munmap(pages + MISSING * CUNWIND_PAGE_BYTES, CUNWIND_PAGE_BYTES) != 0) return false;
  uint64_t start = (uint64_t)(uintptr_t)pages, missing = start + MISSING * CUNWIND_PAGE_BYTES;
  const struct {
    uint64_t address;
    size_t length, expected;
  } reads[] = {
      {start, 8, 8},
      {start + 4090, 12, 12},
      {start + 17, 20 * 4096, 20 * 4096},
      {start, sizeof copy, MISSING * 4096},
      {start + 4095, sizeof copy - 4095, MISSING * 4096 - 4095},
      {missing - 3, 8, 3},
      {missing, 8, 0},
      {missing + 4096, 9 * 4096, 9 * 4096},
      {0, 8, 0},
      {16, 4096, 0},
      {UINT64_MAX - 4, 16, 0},
      {1ull << 63, 8, 0},
      {0x0000800000000000ull, 8, 0},
      {start, 0, 0},
  };
  for (size_t index = 0; index < sizeof reads / sizeof *reads; index++) {
    memset(copy, 0, sizeof copy);
    if (cunwind_guarded_read(reads[index].address, copy, reads[index].length) != reads[index].expected) return false;
    const uint8_t *source = pages + (reads[index].address - start);
    if (reads[index].expected > 0 && memcmp(copy, source, reads[index].expected) != 0) return false;
  }
  struct iovec pieces[] = {{pages + 5, 10}, {pages + 4090, 100}, {pages + 35 * 4096, 1}};
  if (!cunwind_guarded_gather(pieces, 3, copy, 111) || memcmp(copy + 10, pages + 4090, 100) != 0) return false;
  pieces[1].iov_base = (void *)(uintptr_t)(missing - 50);
  return !cunwind_guarded_gather(pieces, 3, copy, 111);
}

static void expect_capture(const cunwind_options *options, cunwind_test_posture posture, cunwind_test_method method) {
  cunwind_test_subject subject;
  if (!cunwind_test_subject_start_with(&subject, posture, 30, options)) return;
  bool is_whole = false;
  // The thread may wait for a CPU.
  for (int tries = 0; !is_whole && tries < 20; tries++) {
    is_whole = cunwind_test_is_whole(cunwind_test_capture(&subject, method));
    if (!is_whole) usleep(1000);
  }
  EXPECT(is_whole);
  EXPECT(cunwind_test_subject_stop(&subject) > 0);
}

static void check(cunwind_memory_access wanted, cunwind_memory_access expected) {
  cunwind_options options = {.signal_number = SIGPROF, .memory_access = wanted};
  cunwind_engine *engine = cunwind_engine_create(&options);
  if (!EXPECT(engine)) return;
  EXPECT(cunwind_memory_access_in_use() == expected);
  EXPECT(reads_what_is_there());
  expect_capture(&options, CUNWIND_TEST_SPINNING, cunwind_capture_stop);
  expect_capture(&options, CUNWIND_TEST_IN_ALLOCA, cunwind_capture_read);
  EXPECT(cunwind_memory_access_in_use() == expected);
  cunwind_engine_destroy(engine);
}

static void check_access(int access) { check((cunwind_memory_access)access, (cunwind_memory_access)access); }

void cunwind_check_memory_access(int access) { cunwind_test_expect_in_child(check_access, access); }

static void check_file(int unused) {
  (void)unused;
  check(CUNWIND_MEMORY_ANY, CUNWIND_MEMORY_FILE);
}

static void check_without_call(int error) {
  EXPECT(cunwind_test_refuse(SYS_process_vm_readv, cunwind_test_refusal_by(error)) == 0);
  check_file(0);
  // A child of the child has its own memory, and so needs its own file.
  cunwind_test_expect_in_child(check_file, 0);
}

void cunwind_check_memory_without_call(int error) {
  // The access that the parent has chosen must not make the child read the parent's memory.
  cunwind_engine_destroy(cunwind_test_engine(SIGPROF));
  cunwind_test_expect_in_child(check_without_call, error);
}

static void read_without_engine(int error) {
  uint64_t word = 0x5a5a, copy = 0;
  EXPECT(cunwind_test_refuse(SYS_process_vm_readv, cunwind_test_refusal_by(error)) == 0);
  EXPECT(cunwind_read_memory((uint64_t)(uintptr_t)&word, &copy, sizeof copy) && copy == word);
  EXPECT(!cunwind_read_memory(16, &copy, sizeof copy));
}

void cunwind_check_memory_without_engine(int error) { cunwind_test_expect_in_child(read_without_engine, error); }

static volatile sig_atomic_t opened;

static void refuse_open(int number, siginfo_t *info, void *context) {
  (void)number;
  (void)info;
  ucontext_t *interrupted = context;
#if defined(__x86_64__)
  interrupted->uc_mcontext.gregs[REG_RAX] = -EPERM;
#else
  interrupted->uc_mcontext.regs[0] = (uint64_t)-EPERM;
#endif
  opened++;
}

static void read_words_under_filter(int words) {
  uint64_t word = 0x5a5a, copy = 0, address = (uint64_t)(uintptr_t)&word;
  struct sigaction action = {.sa_sigaction = refuse_open, .sa_flags = SA_SIGINFO};
  // Each file that would be opened is counted, and is not.
  EXPECT(sigaction(SIGSYS, &action, NULL) == 0);
  if (!EXPECT(cunwind_test_refuse(SYS_openat, SECCOMP_RET_TRAP) == 0)) return;
  bool is_read = cunwind_read_memory(address, &copy, sizeof copy);
  EXPECT(cunwind_memory_access_in_use() == CUNWIND_MEMORY_CALL);
  uint64_t began = cunwind_now();
  opened = 0;
  for (int index = 0; index < words; index++) {
    copy = 0;
    is_read &= cunwind_read_memory(address, &copy, sizeof copy) && copy == word;
  }
  uint64_t milliseconds = (cunwind_now() - began) / 1000000;
  cunwind_test_say("%d words, %d files in %llu ms", words, (int)opened, COUNT(milliseconds));
  EXPECT(is_read);
  // One each millisecond at most, however long it takes.
  EXPECT((uint64_t)opened <= milliseconds + 1);
}

void cunwind_check_words_under_filter(int words) { cunwind_test_expect_in_child(read_words_under_filter, words); }

void cunwind_check_preferred_memory_access(int unused) {
  (void)unused;
  cunwind_engine *engine = cunwind_test_engine(SIGURG);
  EXPECT(engine && cunwind_memory_access_in_use() == CUNWIND_MEMORY_CALL);
  cunwind_engine_destroy(engine);
}

static size_t resident_bytes(void *memory, size_t bytes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), count = 0;
  unsigned char present[300];
  if (!EXPECT(bytes / page + 1 <= sizeof present && mincore(memory, bytes, present) == 0)) return 0;
  for (size_t index = 0; index * page < bytes; index++) count += (present[index] & 1) * page;
  return count;
}

// Most programs never stall; of what a stop needs, the first page is there, for which it would wait during munmap(2).
void cunwind_check_idle_memory(int unused) {
  (void)unused;
  cunwind_engine *engine = cunwind_test_engine(SIGURG);
  if (!EXPECT(engine)) return;
  cunwind_helper_memory *helper = &engine->helper;
  const size_t stack_bytes = 8 * CUNWIND_PAGE_BYTES;
  // An image may be loaded or unloaded meanwhile.
  cunwind_page_cache_flush(&engine->pages);
  size_t pages = resident_bytes(engine->pages.pages, sizeof *engine->pages.pages);
  size_t stack = resident_bytes(helper->stack + helper->guard_bytes, stack_bytes);
  size_t spare = resident_bytes(engine->spare.stack + engine->spare.guard_bytes, stack_bytes);
  size_t copies = resident_bytes(helper->copy->bytes, CUNWIND_MAX_STACK_BYTES);
  copies += resident_bytes(engine->spare.copy->bytes, CUNWIND_MAX_STACK_BYTES);
  cunwind_test_say("%zu bytes of images, %zu and %zu of stacks, %zu of copies", pages, stack, spare, copies);
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  EXPECT(pages == 0 && stack == page && spare == page && copies == 2 * page);
  cunwind_helper_touch(helper);
  EXPECT(resident_bytes(helper->stack + helper->guard_bytes, stack_bytes) >= stack_bytes);
  cunwind_stack_bounds bounds = {0};
  cunwind_stack_copy_touch(helper->copy, &bounds);
  size_t first = resident_bytes(helper->copy->bytes, CUNWIND_MAX_STACK_BYTES);
  EXPECT(first >= CUNWIND_FIRST_COPY_BYTES && first <= 2 * CUNWIND_FIRST_COPY_BYTES);
  bounds.high = bounds.low + 2 * CUNWIND_MAX_STACK_BYTES;
  cunwind_stack_copy_touch(helper->copy, &bounds);
  EXPECT(resident_bytes(helper->copy->bytes, CUNWIND_MAX_STACK_BYTES) == CUNWIND_MAX_STACK_BYTES);
  cunwind_engine_destroy(engine);
}
