// Reads of this process's own memory by the kernel, so that a bad address is an error and not a signal.
//
// There are three ways, because each is forbidden on some systems. process_vm_readv(2) is the fastest, but the default
// seccomp profiles of older container runtimes refuse it. /proc/self/mem works in any dumpable process. Both need no
// ptrace permission within the caller's own thread group (__ptrace_may_access permits it first). In the third way the
// kernel copies through a pipe: write(2) of unmapped memory returns EFAULT. It takes two calls per page and, during a
// read, two descriptors. A handler for SIGSEGV would be faster, but the app or its crash reporter may have one.

#define _GNU_SOURCE
#include "Memory/guarded_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "System/own_process.h"
#include "System/raw_system_call.h"

/// The remote pieces in one call. The kernel accepts 1024 (UIO_MAXIOV); 16 keep the caller's stack small.
#define PIECES_PER_CALL 16

/// A cunwind_memory_access. Creating an engine sets it; existing engines read the same bytes by any access.
static int chosen_access = CUNWIND_MEMORY_ANY;
/// /proc/self/mem: the process, because a child of fork(2) needs its own file, and the descriptor; 0: not open.
static uint64_t chosen_file;
/// The file that this number stood for: a program that closes all descriptors may use the number again.
static uint64_t chosen_device, chosen_inode;
/// The seccomp filters under which the access was chosen: cunwind_seccomp_filters().
static uint32_t chosen_under;

CUNWIND_BARE static long own_process(void) { return cunwind_raw(SYS_getpid, 0, 0, 0, 0, 0, 0); }

CUNWIND_BARE static long read_once(long pid, const struct iovec *local, const struct iovec *remote, long count) {
  return cunwind_raw(SYS_process_vm_readv, pid, (long)local, 1, (long)remote, count, 0);
}

// A partial transfer never splits a remote piece (process_vm_readv(2)): with pages, the part before a hole is known.
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

CUNWIND_BARE static size_t read_by_call(uint64_t address, void *to, size_t length) {
  // The helper has the same memory but another pid: always use the caller's own pid.
  long pid = own_process();
  struct iovec local, remote;
  local.iov_base = to;
  local.iov_len = length;
  remote.iov_base = (void *)(uintptr_t)address;
  remote.iov_len = length;
  if (read_once(pid, &local, &remote, 1) == (long)length) return length;
  return read_by_page(pid, address, to, length);
}

// Works in the helper, too: it shares the descriptor and the memory.
CUNWIND_BARE static size_t read_by_file(uint64_t address, void *to, size_t length) {
  size_t done = 0;
  int file = (int)(uint32_t)__atomic_load_n(&chosen_file, __ATOMIC_ACQUIRE);
  if (address > INT64_MAX) return 0;  // The offset would be negative.
  while (done < length) {
    long got = cunwind_raw(SYS_pread64, file, (long)((uint8_t *)to + done), (long)(length - done),
                           (long)(address + done), 0, 0);
    if (got <= 0) break;
    done += (size_t)got;
  }
  return done;
}

// Never blocks: a pipe holds at least one page, even for a user above the limit on pipes (pipe(7)).
CUNWIND_BARE static size_t read_by_pipe(uint64_t address, void *to, size_t length) {
  int ends[2];
  size_t done = 0;
  if (cunwind_raw(SYS_pipe2, (long)ends, O_CLOEXEC | O_NONBLOCK, 0, 0, 0, 0) != 0) return 0;
  while (done < length) {
    uint64_t at = address + done;
    size_t piece = CUNWIND_PAGE_BYTES - (size_t)(at % CUNWIND_PAGE_BYTES);
    if (piece > length - done) piece = length - done;
    if (cunwind_raw(SYS_write, ends[1], (long)at, (long)piece, 0, 0, 0) != (long)piece) break;
    if (cunwind_raw(SYS_read, ends[0], (long)((uint8_t *)to + done), (long)piece, 0, 0, 0) != (long)piece) break;
    done += piece;
  }
  cunwind_raw(SYS_close, ends[0], 0, 0, 0, 0, 0);
  cunwind_raw(SYS_close, ends[1], 0, 0, 0, 0, 0);
  return done;
}

CUNWIND_BARE static size_t read_by(int access, uint64_t address, void *to, size_t length) {
  if (access == CUNWIND_MEMORY_FILE) return read_by_file(address, to, length);
  return access == CUNWIND_MEMORY_PIPE ? read_by_pipe(address, to, length) : read_by_call(address, to, length);
}

CUNWIND_BARE size_t cunwind_guarded_read(uint64_t address, void *to, size_t length) {
  if (length == 0 || address + length < address) return 0;
  return read_by(__atomic_load_n(&chosen_access, __ATOMIC_ACQUIRE), address, to, length);
}

CUNWIND_BARE bool cunwind_guarded_read_all(uint64_t address, void *to, size_t length) {
  return cunwind_guarded_read(address, to, length) == length;
}

bool cunwind_guarded_gather(const struct iovec *pieces, size_t count, void *to, size_t length) {
  if (cunwind_memory_access_in_use() == CUNWIND_MEMORY_CALL) {
    struct iovec local = {to, length};
    return read_once(own_process(), &local, pieces, (long)count) == (long)length;
  }
  size_t done = 0;
  for (size_t index = 0; index < count; index++) {
    size_t piece = pieces[index].iov_len;
    if (piece > length - done) return false;
    if (!cunwind_guarded_read_all((uint64_t)(uintptr_t)pieces[index].iov_base, (uint8_t *)to + done, piece))
      return false;
    done += piece;
  }
  return done == length;
}

cunwind_memory_access cunwind_memory_access_in_use(void) {
  return (cunwind_memory_access)__atomic_load_n(&chosen_access, __ATOMIC_ACQUIRE);
}

// Whether this process has the file open, under the number that was chosen.
static bool has_file(void) {
  uint64_t chosen = __atomic_load_n(&chosen_file, __ATOMIC_ACQUIRE);
  struct stat now;
  return chosen >> 32 == cunwind_process_number() && fstat((int)(uint32_t)chosen, &now) == 0 &&
         (uint64_t)now.st_dev == __atomic_load_n(&chosen_device, __ATOMIC_ACQUIRE) &&
         (uint64_t)now.st_ino == __atomic_load_n(&chosen_inode, __ATOMIC_ACQUIRE);
}

static bool open_file(void) {
  uint64_t before = __atomic_load_n(&chosen_file, __ATOMIC_ACQUIRE), process = cunwind_process_number();
  struct stat status;
  if (has_file()) return true;
  int file = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  if (fstat(file, &status) != 0) {
    close(file);
    return false;
  }
  uint64_t opened = process << 32 | (uint32_t)file;
  // Another engine may have opened it meanwhile. The parent's stays open, at no cost: its number may be another file's.
  if (__atomic_compare_exchange_n(&chosen_file, &before, opened, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    __atomic_store_n(&chosen_device, (uint64_t)status.st_dev, __ATOMIC_RELEASE);
    __atomic_store_n(&chosen_inode, (uint64_t)status.st_ino, __ATOMIC_RELEASE);
  } else {
    close(file);
  }
  return true;
}

static bool works(int access) {
  if (access == CUNWIND_MEMORY_CALL && cunwind_call_is_deadly(CUNWIND_CALL_READ_MEMORY)) return false;
  if (access == CUNWIND_MEMORY_FILE && !open_file()) return false;
  uint64_t word = 0x5a5a5a5a5a5a5a5aull, copy = 0;
  return read_by(access, (uint64_t)(uintptr_t)&word, &copy, sizeof copy) == sizeof copy && copy == word;
}

bool cunwind_guarded_choose(cunwind_memory_access wanted) {
  for (int access = CUNWIND_MEMORY_CALL; access <= CUNWIND_MEMORY_PIPE; access++) {
    if ((wanted != CUNWIND_MEMORY_ANY && (int)wanted != access) || !works(access)) continue;
    __atomic_store_n(&chosen_under, cunwind_seccomp_filters(), __ATOMIC_RELAXED);
    __atomic_store_n(&chosen_access, access, __ATOMIC_RELEASE);
    return true;
  }
  // Nothing can be read: reads by a pipe fail, and no call ends the process.
  if (wanted == CUNWIND_MEMORY_ANY) __atomic_store_n(&chosen_access, CUNWIND_MEMORY_PIPE, __ATOMIC_RELEASE);
  errno = EPERM;
  return false;
}

static bool renew(uint32_t (*filters)(void)) {
  cunwind_memory_access access = cunwind_memory_access_in_use();
  bool is_chosen = access != CUNWIND_MEMORY_ANY;
  // One filter more makes no other access better than a file or a pipe.
  if (access == CUNWIND_MEMORY_CALL) is_chosen = __atomic_load_n(&chosen_under, __ATOMIC_RELAXED) == filters();
  // After fork(2) the file is the parent's.
  if (access == CUNWIND_MEMORY_FILE) is_chosen &= has_file();
  return is_chosen || cunwind_guarded_choose(CUNWIND_MEMORY_ANY);
}

bool cunwind_guarded_renew(void) { return renew(cunwind_seccomp_filters); }

bool cunwind_read_memory(uint64_t address, void *to, size_t length) {
  // Lists are read word by word, and under a filter to ask for the filters takes as long as to read twenty words.
  return renew(cunwind_recent_seccomp_filters) && length > 0 && cunwind_guarded_read(address, to, length) == length;
}

size_t cunwind_find_words(uint64_t address, size_t length, uint64_t word, void *buffer, uint64_t *found,
                          size_t capacity) {
  const uint64_t *words = buffer;
  if (!renew(cunwind_recent_seccomp_filters)) return 0;
  size_t count = 0, got = cunwind_guarded_read(address, buffer, length) / sizeof word;
  // Objects on the heap are aligned to 16 bytes (malloc(3)).
  for (size_t index = address % 16 / sizeof word; index < got && count < capacity; index += 2) {
    if (words[index] == word) found[count++] = address + index * sizeof word;
  }
  return count;
}

void *cunwind_map(size_t bytes, int flags) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

uint64_t cunwind_touch(uint8_t *memory, uint64_t from, uint64_t end) {
  for (; from < end; from += CUNWIND_PAGE_BYTES) *(volatile uint8_t *)(memory + from) = 0;
  return from;
}

bool cunwind_page_cache_init(cunwind_page_cache *cache) {
  cache->pages = cunwind_map(sizeof *cache->pages, 0);
  return cache->pages != NULL;
}

void cunwind_page_cache_destroy(cunwind_page_cache *cache) {
  if (cache->pages) munmap(cache->pages, sizeof *cache->pages);
  cache->pages = NULL;
}

void cunwind_page_cache_flush(cunwind_page_cache *cache) {
  // It is all zero then, the addresses, too. Memory that is locked stays.
  if (madvise(cache->pages, sizeof *cache->pages, MADV_DONTNEED) != 0)
    memset(cache->pages->addresses, 0, sizeof cache->pages->addresses);
}

static const uint8_t *page_at(cunwind_page_cache *cache, uint64_t address) {
  // Fibonacci hashing: neighboring pages, and the same page of neighboring images, get different places.
  uint64_t pair = ((address / CUNWIND_PAGE_BYTES * 0x9e3779b97f4a7c15ull) >> 32) % (CUNWIND_CACHED_PAGES / 2);
  uint64_t *both = &cache->pages->addresses[2 * pair];
  uint8_t(*bytes)[CUNWIND_PAGE_BYTES] = &cache->pages->bytes[2 * pair];
  uint8_t *latest = &cache->latest[pair];
  if (both[*latest] == address) return bytes[*latest];
  *latest ^= 1;
  if (both[*latest] == address) return bytes[*latest];
  both[*latest] = 0;
  if (cunwind_guarded_read(address, bytes[*latest], CUNWIND_PAGE_BYTES) != CUNWIND_PAGE_BYTES) return NULL;
  both[*latest] = address;
  return bytes[*latest];
}

bool cunwind_page_cache_read(cunwind_page_cache *cache, uint64_t address, void *to, size_t length) {
  uint8_t *out = to;
  while (length > 0) {
    uint64_t base = address & ~(uint64_t)(CUNWIND_PAGE_BYTES - 1);
    if (base == 0) return false;
    const uint8_t *page = page_at(cache, base);
    if (!page) return false;
    size_t offset = (size_t)(address - base);
    size_t piece = CUNWIND_PAGE_BYTES - offset < length ? CUNWIND_PAGE_BYTES - offset : length;
    memcpy(out, page + offset, piece);
    out += piece;
    address += piece;
    length -= piece;
  }
  return true;
}
