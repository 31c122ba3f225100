// Reads of this process's own memory that cannot fault: at an unmapped address the count is short.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "CUnwind.h"

/// The unit in which memory can be missing. Larger kernel pages are multiples of it, so reads stay exact.
#define CUNWIND_PAGE_BYTES 4096u
/// The number of pages of images that are kept (512 KiB). A first unwind of 40 frames in 8 images touches about 100.
#define CUNWIND_CACHED_PAGES 128u

typedef struct cunwind_cached_pages {
  uint8_t bytes[CUNWIND_CACHED_PAGES][CUNWIND_PAGE_BYTES];
  uint64_t addresses[CUNWIND_CACHED_PAGES];  ///< 0: empty. Page 0 is never cached.
} cunwind_cached_pages;

/// A cache of pages of read-only memory, by address. An address has two places: with one, two pages that are used in turn
/// would replace each other (70 frames took 33 to 104 us, by the addresses of the images).
typedef struct cunwind_page_cache {
  cunwind_cached_pages *pages;               ///< In pairs.
  uint8_t latest[CUNWIND_CACHED_PAGES / 2];  ///< Of each pair, the one that was used last.
} cunwind_page_cache;

#pragma GCC visibility push(hidden)

/// Copies up to `length` bytes at `address` of this process into `to`, in order. Returns the number of bytes before the
/// first unreadable page. Async-signal-safe: yes, and fit for the helper process.
size_t cunwind_guarded_read(uint64_t address, void *to, size_t length);

/// Copies all `length` bytes at `address`, or returns false. Async-signal-safe: yes, and fit for the helper process.
bool cunwind_guarded_read_all(uint64_t address, void *to, size_t length);

/// Copies `count` pieces (at most UIO_MAXIOV) with `length` bytes in all, one after another, into `to`. False if a byte
/// is not readable. Async-signal-safe: yes.
bool cunwind_guarded_gather(const struct iovec *pieces, size_t count, void *to, size_t length);

/// Chooses the first access that works, or tries only `wanted` if that is not CUNWIND_MEMORY_ANY. False with errno if
/// none works. Under a seccomp filter a child process tries process_vm_readv(2) first.
bool cunwind_guarded_choose(cunwind_memory_access wanted);

/// Chooses anew after fork(2), or if memory is read by process_vm_readv(2) and the calling thread has another number of
/// seccomp filters than at the choice. False with errno if no access works. Async-signal-safe: no.
bool cunwind_guarded_renew(void);

/// Maps zeroed memory, with more flags of mmap(2). NULL with errno on failure.
void *cunwind_map(size_t bytes, int flags);

/// Touches each page of unused memory from offset `from`, where one begins, up to `end`, so that no page fault happens
/// later. Returns the offset at which the next page begins.
uint64_t cunwind_touch(uint8_t *memory, uint64_t from, uint64_t end);

/// Allocates the cache's pages. False with errno on failure.
bool cunwind_page_cache_init(cunwind_page_cache *cache);
void cunwind_page_cache_destroy(cunwind_page_cache *cache);

/// Forgets all pages, and gives their memory back. Call it when an image was loaded or unloaded.
void cunwind_page_cache_flush(cunwind_page_cache *cache);

/// Reads through the cache. Only for what is constant while images stay loaded: read-only segments, unwind tables.
bool cunwind_page_cache_read(cunwind_page_cache *cache, uint64_t address, void *to, size_t length);

#pragma GCC visibility pop
