// The status of a thread: /proc/self/task/<tid>/syscall, status, schedstat and wchan, kept open and parsed by hand.
//
// Any of these files may be missing or empty: sandboxes (gVisor) have fewer than Linux, and in a process that is not
// dumpable, files with addresses belong to root. A missing file costs only the data that no other file has. It never
// means that the thread has ended: only a missing directory does.

#define _GNU_SOURCE
#include "Engine/thread_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "Engine/engine.h"
#include "System/raw_system_call.h"

/// The share of RLIMIT_NOFILE that is left to the app: one in so many.
#define DESCRIPTOR_RESERVE 5u

// Whether the app needs the number, or soon will. The kernel gives the lowest free one, so as many are in use.
static bool is_near_the_limit(int file) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  return (rlim_t)file >= limit.rlim_cur - limit.rlim_cur / DESCRIPTOR_RESERVE;
}

static int open_file(const cunwind_engine *engine, pid_t tid, const char *name) {
  char path[CUNWIND_PROC_PATH_BYTES + 64];
  snprintf(path, sizeof path, "%s/task/%d/%s", engine->proc_directory, (int)tid, name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 || !is_near_the_limit(file)) return file;
  close(file);
  errno = EMFILE;
  return -1;
}

static bool has_directory(pid_t tid) {
  char path[CUNWIND_NUMBERED_PATH_BYTES];
  cunwind_number_path(path, "/proc/self/task/", (uint64_t)tid, "");
  return cunwind_raw(SYS_faccessat, AT_FDCWD, (long)path, F_OK, 0, 0, 0) == 0;
}

// Does not use tgkill(2) with signal 0: to a filter or a tracer, a capture must not look like a signal. Without /proc, a
// thread never counts as ended; nor with the /proc of another PID namespace, which has other ids, also for the caller.
bool cunwind_thread_exists(pid_t tid) {
  return has_directory(tid) || !has_directory((pid_t)cunwind_raw(SYS_gettid, 0, 0, 0, 0, 0, 0));
}

// In a sandbox a file may be empty. If the thread has ended, the kernel returns ESRCH.
static bool shows_something(int file) {
  char first;
  long got = cunwind_raw(SYS_pread64, file, (long)&first, 1, 0, 0, 0);
  return got > 0 || got == -ESRCH;
}

// The file's number in /proc. A program that closes all descriptors, as daemons do, gives theirs to its own files.
static uint64_t identity_of(int file) {
  struct stat status;
  return fstat(file, &status) == 0 ? (uint64_t)status.st_ino ^ (uint64_t)status.st_dev << 48 : 0;
}

cunwind_thread *cunwind_thread_open(cunwind_engine *engine, pid_t tid) {
  cunwind_thread *thread = calloc(1, sizeof *thread);
  if (!thread) return NULL;
  thread->tid = tid;
  static const char *const names[CUNWIND_THREAD_FILES] = {"status", "syscall", "schedstat", "wchan"};
  int error = tid > 0 && cunwind_thread_exists(tid) ? 0 : ESRCH;
  for (int index = 0; index < CUNWIND_THREAD_FILES; index++) {
    int *file = &thread->files[index];
    *file = -1;
    if (error != 0 || (index == CUNWIND_FILE_WCHAN && thread->files[CUNWIND_FILE_SYSCALL] >= 0)) continue;
    *file = open_file(engine, tid, names[index]);
    if (*file < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) error = errno;
    if (*file >= 0 && !shows_something(*file)) {
      close(*file);
      *file = -1;
    }
    if (*file >= 0) thread->identities[index] = identity_of(*file);
  }
  // The thread may have ended meanwhile, which would explain missing files.
  if (error == 0 && thread->files[CUNWIND_FILE_STATUS] < 0 && !cunwind_thread_exists(tid)) error = ESRCH;
  if (error == 0) return thread;
  cunwind_thread_close(thread);
  errno = error;
  return NULL;
}

void cunwind_thread_close(cunwind_thread *thread) {
  if (!thread) return;
  for (int index = 0; index < CUNWIND_THREAD_FILES; index++) {
    int file = thread->files[index];
    if (file >= 0 && identity_of(file) == thread->identities[index]) close(file);
  }
  free(thread);
}

// Reads a file, or as much as fits, into the thread's text. Returns its length, 0 without the file. Negative: an errno;
// ESRCH if the thread has ended.
static long read_file(cunwind_thread *thread, int index) {
  size_t length = 0, size = sizeof thread->text - 1;
  int file = thread->files[index];
  while (file >= 0 && length < size) {
    long got = cunwind_raw(SYS_pread64, file, (long)(thread->text + length), (long)(size - length), (long)length, 0, 0);
    if (got < 0) return got;
    if (got == 0) break;
    length += (size_t)got;
  }
  thread->text[length] = 0;
  return (long)length;
}

static bool is_digit(char letter, int base, unsigned *value) {
  if (letter >= '0' && letter <= '9') *value = (unsigned)(letter - '0');
  else if (base == 16 && letter >= 'a' && letter <= 'f') *value = (unsigned)(letter - 'a' + 10);
  else return false;
  return true;
}

// Skips blanks and "0x", reads the number, and moves `*at` behind it. False: there is none.
static bool take_number(const char **at, int base, uint64_t *number) {
  const char *text = *at;
  unsigned digit;
  while (*text == ' ' || *text == '\t') text++;
  if (base == 16 && text[0] == '0' && text[1] == 'x') text += 2;
  if (!is_digit(*text, base, &digit)) return false;
  for (*number = 0; is_digit(*text, base, &digit); text++) *number = *number * (uint64_t)base + digit;
  *at = text;
  return true;
}

// proc_pid_syscall(5): "running", or "-1 SP PC", or the number, six arguments, SP and PC.
static void parse_system_call(const char *text, cunwind_thread_status *thread_status) {
  uint64_t number = 0;
  bool is_outside = text[0] == '-' && text[1] == '1';
  if (is_outside) text += 2;
  else if (!take_number(&text, 10, &number)) return;
  for (int index = 0; !is_outside && index < 6; index++) {
    if (!take_number(&text, 16, &thread_status->arguments[index])) return;
  }
  if (!take_number(&text, 16, &thread_status->stack_pointer) || !take_number(&text, 16, &thread_status->pc)) return;
  thread_status->system_call = is_outside ? -1 : (int64_t)number;
  // A new thread and a kernel thread have neither.
  thread_status->is_blocked = thread_status->stack_pointer != 0 && thread_status->pc != 0;
}

static const char *after(const char *text, const char *label) {
  const char *found = strstr(text, label);
  return found ? found + strlen(label) : NULL;
}

// proc_pid_status(5). The name comes first, with its line breaks escaped, so it cannot look like another field.
static void parse_status(const char *text, cunwind_thread_status *thread_status) {
  const char *state = after(text, "\nState:\t"), *blocked = after(text, "\nSigBlk:");
  const char *voluntary = after(text, "\nvoluntary_ctxt_switches:");
  const char *involuntary = after(text, "\nnonvoluntary_ctxt_switches:");
  if (state) thread_status->state = *state;
  if (!blocked || !take_number(&blocked, 16, &thread_status->blocked_signals)) thread_status->blocked_signals = 0;
  thread_status->counts_switches = voluntary && involuntary &&
                                   take_number(&voluntary, 10, &thread_status->voluntary_switches) &&
                                   take_number(&involuntary, 10, &thread_status->involuntary_switches);
}

// An open file of /proc/<tid> belongs to its thread: after the thread's end a read returns ESRCH, even if another
// thread has the id by then. If no file can be read, only the directory shows whether the thread exists.
bool cunwind_thread_is_there(const cunwind_thread *thread) {
  int status = thread->files[CUNWIND_FILE_STATUS], file = status >= 0 ? status : thread->files[CUNWIND_FILE_SYSCALL];
  char first;
  if (file >= 0 && cunwind_raw(SYS_pread64, file, (long)&first, 1, 0, 0, 0) == -ESRCH) return false;
  return cunwind_thread_exists(thread->tid);
}

bool cunwind_thread_read_status(cunwind_thread *thread, cunwind_thread_status *thread_status) {
  long got = read_file(thread, CUNWIND_FILE_STATUS);
  if (got == -ESRCH) return false;
  if (got <= 0) return cunwind_thread_exists(thread->tid);
  parse_status(thread->text, thread_status);
  return thread_status->state != 'Z' && thread_status->state != 'X';
}

bool cunwind_thread_read_system_call(cunwind_thread *thread, cunwind_thread_status *thread_status) {
  thread_status->is_blocked = thread_status->shows_system_call = false;
  thread_status->system_call = -1;
  long got = read_file(thread, CUNWIND_FILE_SYSCALL);
  if (got == -ESRCH) return false;
  if (got <= 0) return cunwind_thread_exists(thread->tid);
  thread_status->shows_system_call = true;
  parse_system_call(thread->text, thread_status);
  return true;
}

// proc_pid_wchan(5): the kernel function in which the thread waits, or "0" if it is hidden.
static void read_wait(cunwind_thread *thread, cunwind_thread_status *thread_status) {
  if (read_file(thread, CUNWIND_FILE_WCHAN) <= 0 || strcmp(thread->text, "0") == 0) return;
  snprintf(thread_status->waits_in, sizeof thread_status->waits_in, "%.*s", (int)strcspn(thread->text, "\n"),
           thread->text);
}

// CPU time, time runnable, time slices. All are 0 if the kernel does not count them (proc_pid_schedstat).
uint64_t cunwind_thread_slices(cunwind_thread *thread) {
  if (read_file(thread, CUNWIND_FILE_SCHEDSTAT) <= 0) return 0;
  const char *text = thread->text;
  uint64_t number = 0;
  for (int field = 0; field < 3; field++) {
    if (!take_number(&text, 10, &number)) return 0;
  }
  return number;
}

cunwind_status cunwind_thread_inspect(cunwind_thread *thread, cunwind_thread_status *thread_status) {
  memset(thread_status, 0, sizeof *thread_status);
  if (!cunwind_thread_read_status(thread, thread_status) || !cunwind_thread_read_system_call(thread, thread_status)) {
    return CUNWIND_NO_SUCH_THREAD;
  }
  if (!thread_status->shows_system_call) read_wait(thread, thread_status);
  return CUNWIND_OK;
}

// ---- The proof that a thread stayed blocked -------------------------------------------------------------------------
// The proof reads the count of time slices, then SP and PC, then the copy, then the count again. /proc shows SP and PC
// only for a thread that is off CPU (task_current_syscall waits until it is inactive), and the kernel counts a slice
// before the thread runs in it (sched_info_arrive). All of that takes 3 us, less than a wait for a fast disk.
//
// A kernel without CONFIG_SCHEDSTATS counts switches, not slices. Then the order is: switches, SP and PC, the copy, SP
// and PC, switches. A thread that was off CPU both times and ran in between was switched out once more, and the kernel
// counts that before it happens. This takes 15 us.

cunwind_status cunwind_thread_before_read(cunwind_thread *thread, cunwind_blocked_thread *before) {
  memset(before, 0, sizeof *before);
  before->slices = cunwind_thread_slices(thread);
  if (before->slices == 0 && !cunwind_thread_read_status(thread, &before->thread_status)) return CUNWIND_NO_SUCH_THREAD;
  if (!cunwind_thread_read_system_call(thread, &before->thread_status)) return CUNWIND_NO_SUCH_THREAD;
  if (!before->thread_status.shows_system_call || (before->slices == 0 && !before->thread_status.counts_switches))
    return CUNWIND_NOT_SHOWN;
  return before->thread_status.is_blocked ? CUNWIND_OK : CUNWIND_NOT_BLOCKED;
}

static bool is_the_same(const cunwind_thread_status *before, const cunwind_thread_status *after) {
  return after->is_blocked && before->system_call == after->system_call && before->pc == after->pc &&
         before->stack_pointer == after->stack_pointer &&
         memcmp(before->arguments, after->arguments, sizeof before->arguments) == 0 &&
         before->voluntary_switches == after->voluntary_switches &&
         before->involuntary_switches == after->involuntary_switches;
}

cunwind_status cunwind_thread_after_read(cunwind_thread *thread, const cunwind_blocked_thread *before) {
  // Read the copy before the count: a thread that runs changes the count first.
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if (before->slices != 0) return cunwind_thread_slices(thread) == before->slices ? CUNWIND_OK : CUNWIND_MOVED;
  cunwind_thread_status after;
  memset(&after, 0, sizeof after);
  if (!cunwind_thread_read_system_call(thread, &after) || !cunwind_thread_read_status(thread, &after)) {
    return CUNWIND_NO_SUCH_THREAD;
  }
  return is_the_same(&before->thread_status, &after) ? CUNWIND_OK : CUNWIND_MOVED;
}

// ---- The tracer of a thread: a debugger, or the helper of another capture ----------------------------------------------

pid_t cunwind_tracer(pid_t tid) {
  char path[64], text[2048];
  snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)tid);
  if (cunwind_read_text(path, text, sizeof text) <= 0) return 0;
  const char *line = strstr(text, "\nTracerPid:");
  return line ? (pid_t)strtol(line + strlen("\nTracerPid:"), NULL, 10) : 0;
}

bool cunwind_is_stop_helper(pid_t pid) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  if (pid <= 0 || cunwind_read_text(path, text, sizeof text) <= 0) return false;
  const char *parent = cunwind_behind_field(text, 3), *exit_signal = cunwind_behind_field(text, 37);
  return parent && exit_signal && strtol(parent, NULL, 10) == getpid() && strtol(exit_signal, NULL, 10) == 0;
}
