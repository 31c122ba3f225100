// Calls that stay in the kernel because they move or copy much at once.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"

__attribute__((noinline)) long cunwind_test_make_big_call(cunwind_test_big_call call, int source, int sink,
                                                          void *memory, size_t length, unsigned *calls) {
  long result = 0;
  *calls = 1;
  switch (call) {
    case CUNWIND_TEST_BIG_READ:
      result = read(source, memory, length);
      break;
    case CUNWIND_TEST_BIG_WRITE:
      result = write(sink, memory, length);
      break;
    case CUNWIND_TEST_BIG_COPY:
      // As every program has to.
      for (*calls = 0; result >= 0 && (size_t)result < length; ++*calls) {
        ssize_t copied = copy_file_range(source, NULL, sink, NULL, length - (size_t)result, 0);
        result = copied <= 0 ? -1 : result + copied;
      }
      break;
    case CUNWIND_TEST_BIG_MUNMAP:
      result = munmap(memory, length);
      break;
    case CUNWIND_TEST_BIG_FORK:
      result = fork();
      if (result == 0) _exit(0);
      if (result > 0) waitpid((pid_t)result, NULL, 0);
      break;
  }
  __asm__ volatile("" : "+r"(result));  // No tail call: the test searches for this frame.
  return result < 0 ? -errno : result;
}

bool cunwind_test_big_call_contains(uint64_t address) {
  uint64_t begin = (uint64_t)(uintptr_t)&cunwind_test_make_big_call;
  return address >= begin && address < begin + 512;
}

void *cunwind_test_map_small_pages(size_t length, bool reads) {
  char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  madvise(memory, length, MADV_NOHUGEPAGE);
  // fork(2) copies the page tables of memory of which at least one page was written.
  if (reads) *(volatile char *)memory = 1;
  if (reads && madvise(memory, length, MADV_POPULATE_READ) == 0) return memory;
  for (size_t at = 0; reads && at < length; at += 4096) (void)*(volatile char *)(memory + at);
  return memory;
}
