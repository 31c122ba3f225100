// This process, as opposed to a child of fork(2), which has its memory.

#pragma once

#include <stdint.h>

/// A number that no child of fork(2) has, and never 0: process_number.h says how.
uint32_t cunwind_process_number(void);
