// Where stacks end: the process's writable mappings.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "Engine/stack_copy.h"

/// The largest age of the mappings in nanoseconds: with thousands of threads, reading them takes milliseconds.
#define CUNWIND_MAP_AGE_NANOSECONDS 100000000ull
/// The largest age, in nanoseconds, at which an address without a mapping is believed to have none.
#define CUNWIND_MISSING_AGE_NANOSECONDS 10000000ull
/// The most mappings kept, of which the kernel permits some 65,530 by default (vm.max_map_count).
#define CUNWIND_MAX_MAPPINGS 65536u

typedef struct cunwind_stack_range {
  uint64_t low, high;
} cunwind_stack_range;

/// The writable mappings, ascending by address, read once for the captures of many threads.
typedef struct cunwind_stack_map {
  cunwind_stack_range *mappings;
  size_t count;
  uint64_t read_at;  ///< In monotonic nanoseconds; 0: never.
  uint64_t reads;    ///< How often they were read.
} cunwind_stack_map;

#pragma GCC visibility push(hidden)

/// Reserves memory for the mappings without using it. False with errno on failure.
bool cunwind_stack_map_init(cunwind_stack_map *map);
void cunwind_stack_map_destroy(cunwind_stack_map *map);

/// Finds the writable mapping that contains `address`. False: there is none. Neither locks nor allocates.
bool cunwind_stack_map_find(cunwind_stack_map *map, uint64_t address, cunwind_stack_bounds *bounds);

#pragma GCC visibility pop
