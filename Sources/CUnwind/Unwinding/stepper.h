// A step by call frame information: the caller's registers from a frame's, by the rules of its function.
//
// There are two of them: libunwind, a well-kept library that is loaded if it is installed, and our own. Ours guards
// libunwind, which may crash on damaged tables: a PC goes to it only if our parser has accepted the function's entry and
// the rules at the PC. Ours stands in for it, where it is missing or fails. And each is the other's witness.

#ifndef CUNWIND_STEPPER_H
#define CUNWIND_STEPPER_H

#include <stdbool.h>

#include "Machine/registers.h"
#include "Unwinding/unwind.h"

/// The most bytes of an unwinder's name, and of the reason why it is not libunwind.
#define CUNWIND_UNWINDER_NAME_BYTES 32
#define CUNWIND_UNWINDER_REASON_BYTES 256

struct cunwind_stepper {
  char name[CUNWIND_UNWINDER_NAME_BYTES];
  /// Makes one step. `from` has a frame's registers; `*to` gets its caller's. `is_exact`: the PC is not a return
  /// address.
  cunwind_step (*step)(cunwind_stepper *stepper, cunwind_unwinder *unwinder, const cunwind_registers *from,
                       bool is_exact, cunwind_registers *to);
  /// Forgets what it knows of the images.
  void (*flush)(cunwind_stepper *stepper);
  void (*destroy)(cunwind_stepper *stepper);
};

#if defined(__x86_64__)
#define CUNWIND_LIBRARY "libunwind-x86_64.so.8"
#else
#define CUNWIND_LIBRARY "libunwind-aarch64.so.8"
#endif

#pragma GCC visibility push(hidden)

/// The registers that a callee preserves, beside SP; the first CUNWIND_KEPT_COUNT elements.
extern const uint8_t cunwind_kept_registers[];
#if defined(__x86_64__)
enum { CUNWIND_KEPT_COUNT = 6 };
#else
enum { CUNWIND_KEPT_COUNT = 11 };
#endif

/// Returns our own stepper, which is never freed.
cunwind_stepper *cunwind_own_stepper(void);

/// Loads libunwind, the file `library`, and makes a stepper of it. NULL: `reason` (CUNWIND_UNWINDER_REASON_BYTES) says
/// why. The library stays loaded for good. Takes the dynamic linker's lock, so no thread may be stopped.
cunwind_stepper *cunwind_library_stepper_create(const char *library, char *reason);

#pragma GCC visibility pop

#endif
