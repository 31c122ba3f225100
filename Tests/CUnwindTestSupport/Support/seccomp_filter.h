// Seccomp filters for child processes of tests.

#ifndef CUNWIND_TEST_SECCOMP_FILTER_H
#define CUNWIND_TEST_SECCOMP_FILTER_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

/// Makes the kernel answer the system call `call` of this process with `action` (SECCOMP_RET_...). Negative with errno:
/// the filter was not installed.
int cunwind_test_refuse(uint32_t call, uint32_t action);

/// Returns the action that makes a call fail with `error`, or kills the process (0).
uint32_t cunwind_test_refusal_by(int error);

#pragma GCC visibility pop

#endif
