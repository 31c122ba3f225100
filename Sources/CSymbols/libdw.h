// libdw's functions, found with dlsym(3).

#pragma once

#if !__has_include(<elfutils/libdw.h>)
// clang-format off
#error "StallWatch needs libdw's headers to be built: apt-get install libdw-dev (Debian, Ubuntu) or dnf install elfutils-devel."
// clang-format on
#endif

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

/// The memory that has to be free before libdw works, in bytes.
///
/// Some of its allocations are not checked (dynamicsizehash_concurrent.c), so it must not start where memory is short. One
/// call takes a few megabytes beside what is counted; the rest is left to the app.
#define CSYMBOLS_LEAST_ROOM (32u << 20)
/// The functions that are used. All are in elfutils since 0.158 (2014), and their versions in the library never change.
// clang-format off
#define CSYMBOLS_LIBDW_FUNCTIONS(X)                                                                              \
  X(elf_version) X(elf_memory) X(elf_end) X(elf_getscn) X(elf_getdata)                                           \
  X(dwarf_begin_elf) X(dwarf_new_oom_handler) X(dwarf_end) X(dwarf_next_unit) X(dwarf_offdie)                    \
  X(dwarf_child) X(dwarf_siblingof) X(dwarf_dieoffset) X(dwarf_tag)                                              \
  X(dwarf_ranges) X(dwarf_haspc) X(dwarf_attr) X(dwarf_attr_integrate) X(dwarf_hasattr)                          \
  X(dwarf_formstring) X(dwarf_formudata) X(dwarf_formflag)                                                       \
  X(dwarf_getsrc_die) X(dwarf_lineaddr) X(dwarf_linesrc) X(dwarf_lineno) X(dwarf_linecol)                        \
  X(dwarf_getsrcfiles) X(dwarf_filesrc)
// clang-format on

typedef struct csymbols_libdw {
#define CSYMBOLS_POINTER(name) __typeof__(&name) name;
  CSYMBOLS_LIBDW_FUNCTIONS(CSYMBOLS_POINTER)
#undef CSYMBOLS_POINTER
} csymbols_libdw;

#pragma GCC visibility push(hidden)

/// The loaded library, or NULL when it is not there. Any thread. Loads it the first time.
const csymbols_libdw *csymbols_libdw_get(void);

/// Whether the executable was started by a dynamic loader. Any thread, not async-signal-safe.
///
/// In a static executable dlopen(3) gives the library a second libc, which was never initialized: libdw crashes in it.
bool csymbols_has_dynamic_loader(void);

/// Returns whether `bytes`, and CSYMBOLS_LEAST_ROOM beside them, may be mapped now.
bool csymbols_has_room(uint64_t bytes);

#pragma GCC visibility pop
