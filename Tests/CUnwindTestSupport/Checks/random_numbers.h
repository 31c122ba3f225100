// Pseudo-random numbers that are the same for the same seed on every machine.

#ifndef CUNWIND_TEST_RANDOM_NUMBERS_H
#define CUNWIND_TEST_RANDOM_NUMBERS_H

#include <stdint.h>

/// The next number of xorshift64* (Vigna 2016). `*state` begins with any number but 0.
static inline uint64_t cunwind_test_random(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 0x2545f4914f6cdd1dull;
}

#endif
