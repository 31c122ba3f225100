// Checks beside those of CUnwindTestSupport, for a machine on which only C programs run.

#ifndef AARCH64_CHECKS_H
#define AARCH64_CHECKS_H

#include <stdbool.h>
#include <stdint.h>

/// What all checks together have counted.
typedef struct totals {
  uint32_t passed, failed;
  uint64_t calls;             ///< Blocking calls of captured threads.
  uint64_t interrupted;       ///< Of these, the ones that returned EINTR.
  uint64_t interrupted_bare;  ///< The same, of those that cannot begin again (calls.c).
  uint64_t early;             ///< The ones that returned before their timeout.
  uint64_t incomplete;        ///< Stacks of blocked threads that did not reach the thread's start.
} totals;

extern totals checked;

/// For printf(3)'s %llu.
#define COUNT(value) ((unsigned long long)(value))

/// Prints one line and counts it. `details` is a format as of printf(3).
__attribute__((format(printf, 3, 4))) void check(bool is_right, const char *name, const char *details, ...);

void check_calls(void);    ///< 31 blocking calls under captures.
void check_symbols(void);  ///< Names and lines from DWARF.

#endif
