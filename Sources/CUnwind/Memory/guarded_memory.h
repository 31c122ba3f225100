// Reads of this process's own memory that cannot fault: an address that is not mapped is a short count.

#ifndef CUNWIND_GUARDED_MEMORY_H
#define CUNWIND_GUARDED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "CUnwind.h"

/// The unit in which memory can be missing. Larger kernel pages are multiples of it, so reads stay exact.
#define CUNWIND_PAGE_BYTES 4096u
/// Pages of images kept between reads: 512 KiB. A stack of 40 frames in 8 images touches about 100 of them when cold.
#define CUNWIND_CACHED_PAGES 128u

typedef struct cunwind_cached_page {
  uint64_t address;  ///< 0: empty. Page 0 is never cached.
  uint8_t bytes[CUNWIND_PAGE_BYTES];
} cunwind_cached_page;

/// Pages of read-only memory, by address.
typedef struct cunwind_page_cache {
  cunwind_cached_page *pages;  ///< CUNWIND_CACHED_PAGES of them.
} cunwind_page_cache;

#pragma GCC visibility push(hidden)

/// Copies up to `length` bytes at `address` of this process into `to`, in order, and returns how many were readable
/// before the first page that is not. Async-signal-safe: yes, and fit for the helper process.
size_t cunwind_guarded_read(uint64_t address, void *to, size_t length);

/// Copies `count` pieces, UIO_MAXIOV at most, of `length` bytes together, one after another into `to`. False when a byte
/// of them is not readable. Async-signal-safe: yes.
bool cunwind_guarded_gather(const struct iovec *pieces, size_t count, void *to, size_t length);

/// Chooses the best access that works here, tried; or tries only `wanted`, if that is not CUNWIND_MEMORY_ANY. False with
/// errno when none works. Under a seccomp filter a child process tries process_vm_readv(2) first. Async-signal-safe: no.
bool cunwind_guarded_choose(cunwind_memory_access wanted);

/// The access that is in use. Async-signal-safe: yes.
cunwind_memory_access cunwind_guarded_access(void);

/// Makes the cache's pages. False with errno. Async-signal-safe: no.
bool cunwind_page_cache_init(cunwind_page_cache *cache);
void cunwind_page_cache_destroy(cunwind_page_cache *cache);

/// Forgets every page: call when an image has come or gone.
void cunwind_page_cache_flush(cunwind_page_cache *cache);

/// Reads through the cache. Only for memory that does not change while the images stay: read-only segments.
bool cunwind_page_cache_read(cunwind_page_cache *cache, uint64_t address, void *to, size_t length);

#pragma GCC visibility pop

#endif
