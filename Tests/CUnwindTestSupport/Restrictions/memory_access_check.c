// Reads this process's memory by each access, and captures with it, in child processes.

#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"
#include "Engine/engine.h"
#include "Restrictions/seccomp_filter.h"
#include "Support/bounded.h"

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

static bool is_captured(cunwind_engine *engine, cunwind_test_posture posture, bool by_read) {
  static cunwind_stack stack;
  cunwind_capture_info info;
  cunwind_test_thread *thread_state = cunwind_test_thread_start(posture, 30);
  cunwind_thread *thread =
      thread_state ? cunwind_thread_open(cunwind_test_thread_tid(thread_state), CUNWIND_ALL_THREAD_FILES, NULL) : NULL;
  if (!thread) return false;
  bool is_whole = false;
  // The thread may be between two of its calls, or may wait for a CPU.
  for (int tries = 0; !is_whole && tries < 20; tries++) {
    cunwind_engine_refresh_images(engine);
    cunwind_status status = by_read ? cunwind_capture_read(engine, thread, &stack, &info)
                                    : cunwind_capture_stop(engine, thread, &stack, &info);
    is_whole = status == CUNWIND_OK && stack.frame_count > 0 && stack.end == CUNWIND_END_COMPLETE;
    if (!is_whole) usleep(1000);
  }
  cunwind_thread_close(thread);
  return is_whole && cunwind_test_thread_stop(thread_state) > 0;
}

// Returns 0, or the number of the first step that failed.
static int check(cunwind_memory_access wanted, cunwind_memory_access expected) {
  cunwind_options options = {.signal_number = SIGPROF, .memory_access = wanted};
  cunwind_engine *engine = cunwind_engine_create(&options);
  if (!engine) return 2;
  if (cunwind_memory_access_in_use() != expected) return 3;
  if (!reads_what_is_there()) return 4;
  if (!is_captured(engine, CUNWIND_TEST_SPINNING, false)) return 5;
  if (!is_captured(engine, CUNWIND_TEST_IN_ALLOCA, true)) return 6;
  cunwind_engine_destroy(engine);
  return 0;
}

static int exit_status(pid_t child) {
  int status = -1;
  if (child > 0) cunwind_test_await_child(child, &status);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int cunwind_test_memory_access(cunwind_memory_access access) {
  pid_t child = fork();
  if (child == 0) _exit(check(access, access));
  return exit_status(child);
}

int cunwind_test_memory_without_call(int error) {
  // The access that the parent has chosen must not make the child read the parent's memory.
  cunwind_engine_destroy(cunwind_test_engine(SIGPROF));
  pid_t child = fork();
  if (child == 0) {
    if (cunwind_test_refuse(SYS_process_vm_readv, cunwind_test_refusal_by(error)) < 0) _exit(1);
    int failed = check(CUNWIND_MEMORY_ANY, CUNWIND_MEMORY_FILE);
    if (failed != 0) _exit(failed);
    // A child of the child has its own memory, and so needs its own file.
    pid_t grandchild = fork();
    if (grandchild == 0) _exit(check(CUNWIND_MEMORY_ANY, CUNWIND_MEMORY_FILE));
    _exit(exit_status(grandchild) == 0 ? 0 : 7);
  }
  return exit_status(child);
}
