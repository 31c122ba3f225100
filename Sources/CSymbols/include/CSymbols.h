// CSymbols: which function, file and line is an address of an ELF file, with the functions inlined there?
//
// Reads DWARF with libdw (elfutils), which is loaded with dlopen(3) at the first use: a system without it loses lines and
// inlined frames, not the program's start. libdw never sees a file. It is given a copy of the sections it needs, so that
// a file that shrinks meanwhile cannot raise SIGBUS, and it has no occasion to ask a debuginfod server.
//
// Where DEBUGINFOD_URLS is set, a constructor of libdw's loads libdebuginfod and libcurl all the same (libdwfl's
// debuginfod-client.c). Neither connects to anything before dwfl_* functions ask, and those are not used. Hiding the
// variable from the constructor would mean changing the app's environment while other threads may read it.
//
// Threads. An image belongs to one thread at a time; two images are independent of each other.
// Nothing here is async-signal-safe, and nothing here may run on a monitored thread.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Functions inlined into one another at one address that are told. Of a deeper nest the outermost are left out.
#define CSYMBOLS_MAX_LOCATIONS 128
#define CSYMBOLS_MAX_SECTIONS 32

typedef enum csymbols_status {
  CSYMBOLS_OK = 0,
  CSYMBOLS_NO_LIBRARY,   ///< libdw.so.1 is not installed, lacks a function, or the executable is static.
  CSYMBOLS_UNREADABLE,   ///< The file cannot be read, or ended sooner than its headers say.
  CSYMBOLS_DAMAGED,      ///< The debug information contradicts itself.
  CSYMBOLS_COMPRESSION,  ///< A section is compressed in a way that this libdw does not know.
  CSYMBOLS_TOO_LARGE,    ///< It would need more memory than allowed.
  CSYMBOLS_NO_MEMORY,    ///< There is no memory.
  CSYMBOLS_NOT_COVERED,  ///< No debug information covers the address.
  CSYMBOLS_SPLIT,  ///< The address is covered by a separate .dwo file, which is not read: there is a line, no function.
  CSYMBOLS_OUT_OF_TIME  ///< The deadline passed first. Asking again goes on where it stopped.
} csymbols_status;

typedef struct csymbols_image csymbols_image;

typedef struct csymbols_section {
  const char *_Nonnull name;  ///< Such as ".debug_info". Copied.
  uint64_t offset, size;
  bool is_compressed;  ///< It has SHF_COMPRESSED, and begins with an Elf64_Chdr.
} csymbols_section;

typedef struct csymbols_location {
  const char *_Nullable function;  ///< Linkage name, or plain name where there is none. Lives as long as the image.
  const char *_Nullable file;      ///< Path as the compiler recorded it. Lives as long as the image.
  uint32_t line;                   ///< 0: not known. Where code stands for no line, the one before it in the function.
  uint32_t column;                 ///< 0: not known.
  const char *_Nullable declaration_file;  ///< Where the function is declared. Lives as long as the image.
  uint32_t declaration_line;               ///< 0: not known, or a function that the compiler made.
  const char *_Nullable directory;         ///< Where the compiler ran. Lives as long as the image.
  bool is_artificial;                      ///< The compiler made the function (DW_AT_artificial).
  bool is_inlined;                         ///< The next location is the function that it was inlined into.
} csymbols_location;

/// Whether libdw can be used. Loads it the first time: about 1 ms, and code of libdw's own constructors.
bool csymbols_is_available(void);

/// Copies sections of the open file `descriptor` (which is not kept) and prepares their debug information.
///
/// `machine` is the file's e_machine. `maximum_bytes` bounds what the image may hold at any time: the copies, what is
/// decompressed from them, our tables, and an upper bound of libdw's line tables. What libdw keeps of abbreviations and
/// units is not counted apart, and less than the bound is too high by (10 000 addresses of a 53 MB debug build: 42 MB
/// counted beside the copies, 26 MB on the heap). Returns NULL, with `*status` saying why. The caller closes the image.
csymbols_image *_Nullable csymbols_open(int descriptor, uint16_t machine, const csymbols_section *_Nonnull sections,
                                        size_t section_count, uint64_t maximum_bytes, csymbols_status *_Nonnull status);

/// Frees an image and everything that its locations point to. NULL is fine.
void csymbols_close(csymbols_image *_Nullable image);

/// Bytes that the image is known to hold now.
uint64_t csymbols_image_bytes(const csymbols_image *_Nonnull image);

/// Stores the functions at the file's virtual address `address`, innermost first; `locations` has room for
/// CSYMBOLS_MAX_LOCATIONS, of which the first `*count` are set, also when the status is not CSYMBOLS_OK.
///
/// `deadline` is in nanoseconds of CLOCK_MONOTONIC. It is checked between steps, of which parsing one unit's line table
/// is the longest: 0.16 us a row measured, so about 0.2 s for a table of 4 MB at 3 bytes a row.
csymbols_status csymbols_locate(csymbols_image *_Nonnull image, uint64_t address, uint64_t deadline,
                                csymbols_location *_Nonnull locations, size_t *_Nonnull count);

// ---- Debug files from a server --------------------------------------------------------------------------------------

/// Asks the debuginfod servers that the environment names (DEBUGINFOD_URLS) for the debug file of a build ID.
///
/// Loads libdebuginfod.so.1 and uses the network; nothing else here does. The library keeps the file in the user's
/// debuginfod cache. The request ends up to a second before `deadline` (nanoseconds of CLOCK_MONOTONIC), because
/// libdebuginfod may wait that long between two checks; with less time left, no server is asked.
/// Returns an open descriptor that the caller closes, or a negative errno: -ENOSYS when the library is not installed or
/// no server is named, -ETIME when the time is over.
int csymbols_debuginfod_open(const uint8_t *_Nonnull build_id, size_t build_id_length, uint64_t deadline);

#ifdef __cplusplus
}
#endif
