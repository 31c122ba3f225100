#pragma once

#include <stdbool.h>

/// Lets as many tasks of each priority run at the same time as CPRELOAD_POOL says, if it is set. Call it before the program
/// has tasks. Returns false if that is impossible, because the Swift runtime is linked into the executable.
bool cpreload_narrow_pool(void);
