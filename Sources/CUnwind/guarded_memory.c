// process_vm_readv(2) on ourselves: the kernel walks the page tables, so a bad address is an error and not a signal.
// The caller's own thread group needs no ptrace permission for it (__ptrace_may_access lets it through first).

#define _GNU_SOURCE
#include "guarded_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "raw_system_call.h"

/// Remote pieces in one call; the kernel takes up to 1024 (UIO_MAXIOV). 16 keep the stack of the caller small.
#define PIECES_PER_CALL 16

CUNWIND_BARE static long read_once(long pid, const struct iovec *local, const struct iovec *remote, long count) {
  return cunwind_raw(SYS_process_vm_readv, pid, (long)local, 1, (long)remote, count, 0);
}

// The manual promises that a partial transfer never splits a remote piece, so what could be read of a range with a hole
// is only known when every piece is one page.
CUNWIND_BARE static size_t read_by_page(long pid, uint64_t address, uint8_t *to, size_t length) {
  size_t done = 0;
  while (done < length) {
    struct iovec remote[PIECES_PER_CALL];
    int count = 0;
    size_t asked = 0;
    while (count < PIECES_PER_CALL && done + asked < length) {
      uint64_t at = address + done + asked;
      size_t piece = CUNWIND_PAGE_BYTES - (size_t)(at % CUNWIND_PAGE_BYTES);
      if (piece > length - done - asked) piece = length - done - asked;
      remote[count].iov_base = (void *)(uintptr_t)at;
      remote[count].iov_len = piece;
      count++;
      asked += piece;
    }
    struct iovec local;
    local.iov_base = to + done;
    local.iov_len = asked;
    long got = read_once(pid, &local, remote, count);
    if (got <= 0) break;
    done += (size_t)got;
    if ((size_t)got < asked) break;
  }
  return done;
}

CUNWIND_BARE size_t cunwind_guarded_read(uint64_t address, void *to, size_t length) {
  if (length == 0 || address + length < address) return 0;
  // The helper has a pid of its own and the same memory: always ask for one's own.
  long pid = cunwind_raw(SYS_getpid, 0, 0, 0, 0, 0, 0);
  struct iovec local, remote;
  local.iov_base = to;
  local.iov_len = length;
  remote.iov_base = (void *)(uintptr_t)address;
  remote.iov_len = length;
  if (read_once(pid, &local, &remote, 1) == (long)length) return length;
  return read_by_page(pid, address, to, length);
}

bool cunwind_guarded_gather(const struct iovec *pieces, size_t count, void *to, size_t length) {
  struct iovec local = {to, length};
  return read_once(cunwind_raw(SYS_getpid, 0, 0, 0, 0, 0, 0), &local, pieces, (long)count) == (long)length;
}

bool cunwind_guarded_memory_works(void) {
  uint64_t word = 0x5a5a5a5a5a5a5a5aull, copy = 0;
  struct iovec local = {&copy, sizeof copy}, remote = {&word, sizeof word};
  long got = read_once(cunwind_raw(SYS_getpid, 0, 0, 0, 0, 0, 0), &local, &remote, 1);
  if (got == (long)sizeof word && copy == word) return true;
  errno = got < 0 ? (int)-got : EIO;
  return false;
}

bool cunwind_page_cache_init(cunwind_page_cache *cache) {
  void *pages = mmap(NULL, CUNWIND_CACHED_PAGES * sizeof(cunwind_cached_page), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  cache->pages = pages == MAP_FAILED ? NULL : pages;
  return cache->pages != NULL;
}

void cunwind_page_cache_destroy(cunwind_page_cache *cache) {
  if (cache->pages) munmap(cache->pages, CUNWIND_CACHED_PAGES * sizeof(cunwind_cached_page));
  cache->pages = NULL;
}

void cunwind_page_cache_flush(cunwind_page_cache *cache) {
  for (unsigned index = 0; index < CUNWIND_CACHED_PAGES; index++) cache->pages[index].address = 0;
}

static const cunwind_cached_page *page_at(cunwind_page_cache *cache, uint64_t address) {
  // Fibonacci hashing: neighbouring pages, and the same page of neighbouring images, fall apart.
  uint64_t slot = (address / CUNWIND_PAGE_BYTES * 0x9e3779b97f4a7c15ull) >> 32;
  cunwind_cached_page *page = &cache->pages[slot % CUNWIND_CACHED_PAGES];
  if (page->address == address) return page;
  page->address = 0;
  if (cunwind_guarded_read(address, page->bytes, CUNWIND_PAGE_BYTES) != CUNWIND_PAGE_BYTES) return NULL;
  page->address = address;
  return page;
}

bool cunwind_page_cache_read(cunwind_page_cache *cache, uint64_t address, void *to, size_t length) {
  uint8_t *out = to;
  while (length > 0) {
    uint64_t base = address & ~(uint64_t)(CUNWIND_PAGE_BYTES - 1);
    if (base == 0) return false;
    const cunwind_cached_page *page = page_at(cache, base);
    if (!page) return false;
    size_t offset = (size_t)(address - base);
    size_t piece = CUNWIND_PAGE_BYTES - offset < length ? CUNWIND_PAGE_BYTES - offset : length;
    memcpy(out, page->bytes + offset, piece);
    out += piece;
    address += piece;
    length -= piece;
  }
  return true;
}
