// A thread in one long read(2) that neither waits nor checks for signals: it copies zeros from a sparse file.

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"
#include "Support/bounded.h"

/// The most that one call moves is 2 GiB less a page (read(2)).
#define MOST_BYTES ((size_t)0x7ffff000)
/// The size of the memory to which all of the buffer is mapped, over and over.
#define WINDOW_BYTES ((size_t)64 << 20)
#define BUFFER_BYTES ((size_t)2 << 30)

struct cunwind_test_kernel_call {
  pthread_t thread;
  int source;
  char *buffer;
  size_t length;
  pid_t tid;
  uint32_t may_begin, is_over, may_end;
  long result;
};

static void unmap(cunwind_test_kernel_call *call) {
  if (call->buffer) munmap(call->buffer, BUFFER_BYTES);
  call->buffer = NULL;
}

// Maps the same pages over and over, untouched: each page that the call copies to costs a fault, and no memory.
static bool map(cunwind_test_kernel_call *call) {
  unmap(call);
  int window = memfd_create("window", MFD_CLOEXEC);
  char *buffer = mmap(NULL, BUFFER_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  bool works = window >= 0 && buffer != MAP_FAILED && ftruncate(window, WINDOW_BYTES) == 0;
  for (size_t at = 0; works && at < BUFFER_BYTES; at += WINDOW_BYTES) {
    works = mmap(buffer + at, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, window, 0) != MAP_FAILED;
  }
  if (window >= 0) close(window);
  call->buffer = buffer == MAP_FAILED ? NULL : buffer;
  return works;
}

// The function is alone in a section whose bounds the linker defines: a sanitizer's code is several times as long.
extern const char __start_make_call_code[], __stop_make_call_code[];

__attribute__((noinline, section("make_call_code"))) static long make_call(cunwind_test_kernel_call *call) {
  long result = read(call->source, call->buffer, call->length);
  __asm__ volatile("" : "+r"(result));  // No tail call: the test searches for this frame.
  return result < 0 ? -errno : result;
}

static void *run(void *context) {
  cunwind_test_kernel_call *call = context;
  __atomic_store_n(&call->tid, gettid(), __ATOMIC_RELEASE);
  while (!__atomic_load_n(&call->may_begin, __ATOMIC_ACQUIRE)) usleep(100);
  call->result = make_call(call);
  __atomic_store_n(&call->is_over, 1, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&call->may_end, __ATOMIC_ACQUIRE)) usleep(1000);
  return NULL;
}

cunwind_test_kernel_call *cunwind_test_kernel_call_create(void) {
  cunwind_test_kernel_call *call = calloc(1, sizeof *call);
  if (!call) return NULL;
  call->length = MOST_BYTES;
  call->source = memfd_create("holes", MFD_CLOEXEC);
  if (call->source < 0 || ftruncate(call->source, (off_t)MOST_BYTES) != 0 || !map(call) ||
      pthread_create(&call->thread, NULL, run, call) != 0) {
    if (call->source >= 0) close(call->source);
    unmap(call);
    free(call);
    return NULL;
  }
  while (!__atomic_load_n(&call->tid, __ATOMIC_ACQUIRE)) usleep(100);
  return call;
}

pid_t cunwind_test_kernel_call_tid(const cunwind_test_kernel_call *call) { return call->tid; }

size_t cunwind_test_kernel_call_length(const cunwind_test_kernel_call *call) { return call->length; }

int cunwind_test_kernel_call_source(const cunwind_test_kernel_call *call) { return call->source; }

void cunwind_test_kernel_call_begin(cunwind_test_kernel_call *call) {
  __atomic_store_n(&call->may_begin, 1, __ATOMIC_RELEASE);
  // The call has written to the first page of the window.
  unsigned char page = 0;
  while (!mincore(call->buffer, 1, &page) && !(page & 1) && !cunwind_test_kernel_call_is_over(call)) usleep(100);
}

bool cunwind_test_kernel_call_is_over(const cunwind_test_kernel_call *call) {
  return __atomic_load_n(&call->is_over, __ATOMIC_ACQUIRE) != 0;
}

bool cunwind_test_kernel_call_contains(uint64_t address) {
  return address >= (uint64_t)(uintptr_t)__start_make_call_code && address < (uint64_t)(uintptr_t)__stop_make_call_code;
}

long cunwind_test_kernel_call_finish(cunwind_test_kernel_call *call) {
  __atomic_store_n(&call->may_begin, 1, __ATOMIC_RELEASE);
  __atomic_store_n(&call->may_end, 1, __ATOMIC_RELEASE);
  pthread_join(call->thread, NULL);
  long result = call->result;
  close(call->source);
  unmap(call);
  free(call);
  return result;
}
