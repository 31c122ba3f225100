// The mappings of this process, from /proc/self/maps.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The largest age of the mappings in nanoseconds: with thousands of threads, reading them takes milliseconds.
#define CUNWIND_MAP_AGE_NANOSECONDS 100000000ull
/// The largest age, in nanoseconds, at which an address without a mapping is believed to have none.
#define CUNWIND_MISSING_AGE_NANOSECONDS 10000000ull
/// The most mappings kept, of which the kernel permits some 65,530 by default (vm.max_map_count).
#define CUNWIND_MAX_MAPPINGS 65536u

typedef struct cunwind_mapping {
  uint64_t low, high;
  uint64_t offset;  ///< The place in the file of the first byte.
  uint64_t file;    ///< The file's device and inode in one number; 0: no file is mapped.
  bool is_writable;
} cunwind_mapping;

/// All mappings, ascending by address, read once for the captures of many threads.
typedef struct cunwind_mappings {
  cunwind_mapping *list;
  size_t count;
  uint64_t read_at;  ///< In monotonic nanoseconds; 0: never.
  uint64_t reads;    ///< How often they, or the paths of their files, were read.
} cunwind_mappings;

#pragma GCC visibility push(hidden)

/// Reserves memory for the mappings without using it. False with errno on failure.
bool cunwind_mappings_init(cunwind_mappings *mappings);
void cunwind_mappings_destroy(cunwind_mappings *mappings);

/// Reads the mappings; none if /proc does not show them. Async-signal-safe: yes.
void cunwind_mappings_read(cunwind_mappings *mappings);

/// Returns the mapping that contains `address`, read anew if need be; NULL: there is none. Async-signal-safe: yes.
const cunwind_mapping *cunwind_mapping_at(cunwind_mappings *mappings, uint64_t address);

/// Gets a mapping of a file and the file's path, without a zero at its end. False: no others are wanted.
typedef bool cunwind_path_use(const cunwind_mapping *mapping, const char *path, size_t length, void *context);

/// Reads the mappings and hands those of files to `use`, ascending by address, with their paths as the kernel writes
/// them; not those of deleted files, and not a path that does not fit into the `room` bytes at `path`. Async-signal-safe:
/// yes, if `use` is.
void cunwind_mapped_paths(cunwind_mappings *mappings, char *path, size_t room, cunwind_path_use *use, void *context);

#pragma GCC visibility pop
