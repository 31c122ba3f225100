// Code of the app in C++.

#ifndef CXX_WORDS_H
#define CXX_WORDS_H

#ifdef __cplusplus
extern "C" {
#endif

/// Sorts words until `milliseconds` have passed. Returns how many. Not async-signal-safe.
long cxx_sort_words(int milliseconds);

/// Waits `milliseconds` for a condition that no thread signals. Returns 1. Not async-signal-safe.
int cxx_wait_for_condition(int milliseconds);

#ifdef __cplusplus
}
#endif

#endif  // CXX_WORDS_H
