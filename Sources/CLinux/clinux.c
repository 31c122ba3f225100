#define _GNU_SOURCE
#include "CLinux.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "process_number.h"

pid_t clinux_gettid(void) { return gettid(); }

uint32_t clinux_process_number(void) { return process_number(); }

bool clinux_is_forked_from(uint32_t number) {
  if (!process_page || (number & MADE_OF_ID) != 0) return process_number() != number;
  return (uint32_t)__atomic_load_n(process_page, __ATOMIC_ACQUIRE) != number;
}

uint64_t clinux_kernel_clock(void) {
  struct timespec now;
  if (syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) != 0) return 0;
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void clinux_name_this_thread(const char *name) {
  // PR_SET_NAME cuts a long name short, where pthread_setname_np(3) refuses it.
  prctl(PR_SET_NAME, name);
}

int clinux_unblock_all_signals(void) {
  sigset_t all;
  sigfillset(&all);
  return pthread_sigmask(SIG_UNBLOCK, &all, NULL);
}

/// Standard error at the program's start. The program may close it, and open something else with its number.
static struct stat standard_error;
static bool has_standard_error;

__attribute__((constructor)) static void remember_standard_error(void) {
  has_standard_error = fstat(STDERR_FILENO, &standard_error) == 0;
}

// What a write sends to the thread that writes: to a pipe without a reader, and beyond RLIMIT_FSIZE.
static const int signals_of_writes[] = {SIGPIPE, SIGXFSZ};

bool clinux_say(const char *line, size_t length) {
  struct stat now;
  if (!has_standard_error || fstat(STDERR_FILENO, &now) != 0 || now.st_dev != standard_error.st_dev ||
      now.st_ino != standard_error.st_ino)
    return false;
  struct pollfd place = {.fd = STDERR_FILENO, .events = POLLOUT};
  sigset_t sent[2], before, pending, stop;
  sigpending(&pending);
  // Blocked, it stops no background program that writes to its terminal (termios(3), TOSTOP).
  sigemptyset(&stop);
  sigaddset(&stop, SIGTTOU);
  pthread_sigmask(SIG_BLOCK, &stop, &before);
  for (int index = 0; index < 2; index++) {
    sigemptyset(&sent[index]);
    sigaddset(&sent[index], signals_of_writes[index]);
    pthread_sigmask(SIG_BLOCK, &sent[index], NULL);
  }
  // What is ready has room for so much, and takes it whole (pipe(7)).
  bool is_said = poll(&place, 1, CLINUX_SAY_MILLISECONDS) == 1 && (place.revents & POLLERR) == 0 &&
                 write(STDERR_FILENO, line, length < PIPE_BUF ? length : PIPE_BUF) >= 0;
  for (int index = 0; index < 2; index++) {
    if (!sigismember(&pending, signals_of_writes[index])) sigtimedwait(&sent[index], NULL, &(struct timespec){0, 0});
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return is_said;
}

bool clinux_prepare_barrier_in_all_threads(void) {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool clinux_barrier_in_all_threads(void) {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

int clinux_semaphore_wait_until(sem_t *semaphore, uint64_t deadline) {
  // sem_timedwait(3) counts in wall-clock time, which can be set: sem_clockwait (glibc 2.30) does not.
  struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000u), .tv_nsec = (long)(deadline % 1000000000u)};
  int failed;
  do {
    failed = deadline == UINT64_MAX ? sem_wait(semaphore) : sem_clockwait(semaphore, CLOCK_MONOTONIC, &until);
  } while (failed != 0 && errno == EINTR);
  return failed == 0 ? 0 : errno;
}

// Exported by libswiftCore. The first gives the short form of Swift names and knows C++ names too; it serves the
// runtime's own backtracer and is not part of the stable ABI, so it may be missing: weak, with the second one behind it.
extern char *_swift_backtrace_demangle(const char *mangled, size_t length, char *buffer, size_t *buffer_size)
    __attribute__((weak));
extern char *swift_demangle(const char *mangled, size_t length, char *buffer, size_t *buffer_size, uint32_t flags)
    __attribute__((weak));

char *clinux_demangle(const char *symbol, size_t length, bool is_long) {
  if (!is_long && _swift_backtrace_demangle != NULL) return _swift_backtrace_demangle(symbol, length, NULL, NULL);
  return swift_demangle != NULL ? swift_demangle(symbol, length, NULL, NULL, 0) : NULL;
}

size_t clinux_function_size(const void *address) {
  Dl_info info;
  const ElfW(Sym) *symbol = NULL;
  if (!dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol || info.dli_saddr != address) return 0;
  return symbol->st_size;
}

const char *clinux_image_path(const void *address) {
  Dl_info info;
  return dladdr(address, &info) ? info.dli_fname : NULL;
}

bool clinux_has_file_capabilities(const char *path) { return getxattr(path, "security.capability", NULL, 0) > 0; }

struct executable_base {
  uint64_t code;  // Given.
  uint64_t base;  // Found.
  bool is_inside;
};

// dl_iterate_phdr(3) visits the executable first, so the first visit is the last.
static int visit_executable(struct dl_phdr_info *info, size_t size, void *argument) {
  (void)size;
  struct executable_base *search = argument;
  search->base = info->dlpi_addr;
  for (size_t index = 0; index < info->dlpi_phnum; index++) {
    const ElfW(Phdr) *header = &info->dlpi_phdr[index];
    uint64_t start = info->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_LOAD && search->code >= start && search->code - start < header->p_memsz) {
      search->is_inside = true;
    }
  }
  return 1;
}

bool clinux_executable_base(const void *code, uint64_t *base) {
  struct executable_base search = {.code = (uint64_t)(uintptr_t)code};
  dl_iterate_phdr(visit_executable, &search);
  *base = search.base;
  return search.is_inside;
}

uint64_t clinux_program_headers(void) { return getauxval(AT_PHDR); }

bool clinux_is_dumpable(void) { return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1; }

int clinux_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0 ? 0 : errno; }

int clinux_accept(int listener) { return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK); }

bool clinux_peer(int socket, pid_t *process, uid_t *user) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  *process = peer.pid;
  *user = peer.uid;
  return true;
}

// Declared here, because the declaration in the headers of libdispatch is deprecated. Swift's own pools have no other way.
extern const void *dispatch_get_current_queue(void) __attribute__((weak));

const void *clinux_current_queue(void) { return dispatch_get_current_queue ? dispatch_get_current_queue() : NULL; }

// Not in a header of libdispatch. CoreFoundation waits for this descriptor to serve the main queue in a run loop.
extern int _dispatch_get_main_queue_handle_4CF(void) __attribute__((weak));

int clinux_main_queue_descriptor(void) {
  return _dispatch_get_main_queue_handle_4CF ? _dispatch_get_main_queue_handle_4CF() : -1;
}

uint64_t clinux_thread_serial(void) {
  static uint64_t last;
  static _Thread_local uint64_t own;
  if (own == 0) own = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
  return own;
}

// "SLWScope" in memory.
#define SCOPE_MAGIC 0x65706f6353574c53ull

// Read from outside while the thread is stopped at any instruction: a scope is complete before it is the innermost one.
static _Thread_local struct clinux_scope *volatile innermost;

void clinux_enter_scope(struct clinux_scope *scope, uint64_t payload, uint64_t bound, void *owner) {
  scope->magic = SCOPE_MAGIC;
  scope->payload = payload;
  scope->bound = bound;
  scope->outer = innermost;
  scope->owner = owner;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  innermost = scope;
}

void clinux_leave_scope(const struct clinux_scope *scope) {
  innermost = scope->outer;
  // The caller may reuse the memory of the scope after this.
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

struct clinux_scope *clinux_innermost_scope(void) {
  return innermost;
}

const void *clinux_scope_variable(void) { return (const void *)&innermost; }

// Notes where the run loop calls out from: return addresses, which Swift does not show.

void clinux_note_source(void *note) { *(uint64_t *)note = (uint64_t)(uintptr_t)__builtin_return_address(0); }

void clinux_note_timer(const void *timer, void *note) {
  (void)timer;
  *(uint64_t *)note = (uint64_t)(uintptr_t)__builtin_return_address(0);
}

void clinux_note_observer(const void *observer, unsigned long activity, void *note) {
  (void)observer, (void)activity;
  *(uint64_t *)note = (uint64_t)(uintptr_t)__builtin_return_address(0);
}

// A block's layout (Block-ABI-Apple, "High Level"). As a global one it is neither copied nor freed. Swift would put a
// function of its own between the run loop and a closure.
enum { BLOCK_IS_GLOBAL = 1 << 28 };

typedef struct block {
  void *isa;
  int flags, reserved;
  void (*invoke)(struct block *block);
  const void *descriptor;
  uint64_t address;
} block;

// Weak: a program without CoreFoundation links this file, too.
extern void *_NSConcreteGlobalBlock[] __attribute__((weak));
extern void CFRunLoopPerformBlock(void *loop, const void *mode, const void *block) __attribute__((weak));

static void note_block(block *noting) { noting->address = (uint64_t)(uintptr_t)__builtin_return_address(0); }

const uint64_t *clinux_perform_noting_block(void *loop, const void *mode) {
  static const uintptr_t descriptor[2] = {0, sizeof(block)};
  static block noting = {.flags = BLOCK_IS_GLOBAL, .invoke = note_block, .descriptor = descriptor};
  if (CFRunLoopPerformBlock && _NSConcreteGlobalBlock) {
    noting.isa = _NSConcreteGlobalBlock;
    CFRunLoopPerformBlock(loop, mode, &noting);
  }
  return &noting.address;
}
