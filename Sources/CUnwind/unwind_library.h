// libunwind's remote unwinder, loaded at run time: a program must start where it is not installed.

#ifndef CUNWIND_UNWIND_LIBRARY_H
#define CUNWIND_UNWIND_LIBRARY_H

#include <libunwind.h>
#include <stdbool.h>

/// Bytes of the text that says why libunwind is not loaded; a longer one is cut.
#define CUNWIND_LIBRARY_ERROR_BYTES 512

// Not in libunwind's headers, but exported for debuggers: its own coredump and ptrace libraries use it.
typedef int cunwind_search_table(unw_addr_space_t space, unw_word_t pc, unw_dyn_info_t *table, unw_proc_info_t *info,
                                 int need_unwind_info, void *context);

/// The functions of libunwind that the engine calls. Their names begin with the architecture's prefix in the library,
/// which is what its headers' macros expand to.
typedef struct cunwind_library {
  bool is_loaded;  ///< False: every function is NULL.
  __typeof__(unw_create_addr_space) *create_addr_space;
  __typeof__(unw_destroy_addr_space) *destroy_addr_space;
  __typeof__(unw_set_caching_policy) *set_caching_policy;
  __typeof__(unw_set_cache_size) *set_cache_size;
  __typeof__(unw_flush_cache) *flush_cache;
  __typeof__(unw_init_remote) *init_remote;
  __typeof__(unw_step) *step;
  __typeof__(unw_get_reg) *get_reg;
  __typeof__(unw_get_save_loc) *get_save_loc;
  cunwind_search_table *search_table;
  char error[CUNWIND_LIBRARY_ERROR_BYTES];  ///< Why it is not loaded; empty when it is.
} cunwind_library;

#pragma GCC visibility push(hidden)

/// Loads libunwind: from `path` if that is not NULL, else or if that fails from beside the executable, then from the
/// system's path. An empty `path` loads nothing. False: `library->error` says why. The library stays loaded for good.
/// Takes the dynamic linker's lock: never call it while a thread is stopped. Async-signal-safe: no.
bool cunwind_library_load(cunwind_library *_Nonnull library, const char *_Nullable path);

#pragma GCC visibility pop

#endif
