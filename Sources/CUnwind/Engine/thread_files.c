// The status of a thread: schedstat, status, stat, syscall and wchan of /proc/self/task/<tid>, kept open and parsed by hand.
//
// Any of them may be missing or empty: sandboxes (gVisor) have fewer than Linux, and in a process that is not dumpable,
// files with addresses belong to root. Only a missing directory, no missing file, means that the thread has ended.

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

/// How long a thread is taken to stay in its control groups, in nanoseconds: a look takes a lock of the whole kernel
/// (proc_cgroup_show), which also the app's calls may wait for.
#define GROUPS_NANOSECONDS 60000000000ull
/// The share of RLIMIT_NOFILE that is left to the app: one in so many.
#define DESCRIPTOR_RESERVE 5u
/// The most files that stay open in a process, and the share of RLIMIT_NOFILE that they may be, one in so many: for
/// select(2) a program has only 1,024 numbers. So few stay open under any limit: those of one loop and the watchdog's own.
#define KEPT_FILES 64u
#define KEPT_SHARE 16u
#define LEAST_KEPT_FILES 8u
#define PATH_BYTES (CUNWIND_THREAD_PATH_BYTES + 16)

static const char *const names[CUNWIND_THREAD_FILES] = {"schedstat", "status", "stat", "syscall", "wchan"};

// A child of fork(2) goes on counting: it has its parent's open.
static unsigned kept_files;

// Counts files that stay open. False: there would be too many.
static bool keep(unsigned count) {
  struct rlimit limit;
  rlim_t most = KEPT_FILES;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / KEPT_SHARE < most) most = limit.rlim_cur / KEPT_SHARE;
  if (most < LEAST_KEPT_FILES) most = LEAST_KEPT_FILES;
  if (__atomic_add_fetch(&kept_files, count, __ATOMIC_RELAXED) <= most) return true;
  __atomic_sub_fetch(&kept_files, count, __ATOMIC_RELAXED);
  return false;
}

// Whether the app needs the number, or soon will. The kernel gives the lowest free one, so as many are in use.
static bool is_near_the_limit(int file) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  return (rlim_t)file >= limit.rlim_cur - limit.rlim_cur / DESCRIPTOR_RESERVE;
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

// Opens a file of the thread, unless it shows nothing. False, with errno: the process has too many.
static bool open_file(cunwind_thread *thread, int index) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/%s", thread->directory, names[index]);
  thread->files[index] = -1;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno != EMFILE && errno != ENFILE && errno != ENOMEM;
  bool is_near = !thread->is_brief && is_near_the_limit(file);
  if (is_near || !shows_something(file)) {
    close(file);
    errno = EMFILE;
    return !is_near;
  }
  thread->files[index] = file;
  thread->identities[index] = identity_of(file);
  return true;
}

// Opens again what the program has closed. The number is left alone: it may be another file's by now.
static void renew(cunwind_thread *thread) {
  for (int index = 0; index < CUNWIND_THREAD_FILES && thread->kept > 0; index++) {
    uint64_t identity = thread->identities[index];
    if (identity != 0 && identity_of(thread->files[index]) != identity) open_file(thread, index);
  }
}

cunwind_thread *cunwind_thread_open(pid_t tid, unsigned files, const char *directory) {
  cunwind_thread *thread = calloc(1, sizeof *thread);
  if (!thread) return NULL;
  thread->tid = tid;
  thread->is_brief = files & CUNWIND_THREAD_BRIEFLY;
  if (directory) snprintf(thread->directory, sizeof thread->directory, "%s", directory);
  else snprintf(thread->directory, sizeof thread->directory, "/proc/self/task/%d", (int)tid);
  for (int index = 0; index < CUNWIND_THREAD_FILES; index++) thread->files[index] = -1;
  int error = tid > 0 && cunwind_thread_exists(tid) ? 0 : ESRCH;
  unsigned count = files & CUNWIND_THREAD_KEPT ? (unsigned)__builtin_popcount(files & CUNWIND_ALL_THREAD_FILES) : 0;
  if (error == 0 && count > 0 && !keep(count)) error = EMFILE;
  if (error == 0) thread->kept = count;
  for (int index = 0; index < CUNWIND_THREAD_FILES && error == 0; index++) {
    if (files >> index & 1 && !open_file(thread, index)) error = errno;
  }
  // The thread may have ended meanwhile, which would explain missing files.
  if (error == 0 && !cunwind_thread_is_there(thread)) error = ESRCH;
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
  __atomic_sub_fetch(&kept_files, thread->kept, __ATOMIC_RELAXED);
  free(thread);
}

// Reads a file, or as much as fits, into the thread's text: a file of /proc/<tid> comes whole with one read. Returns its
// length, 0 without the file. Negative: an errno; ESRCH if the thread has ended.
static long read_file(cunwind_thread *thread, int index) {
  int file = thread->files[index];
  long got =
      file < 0 ? 0 : cunwind_raw(SYS_pread64, file, (long)thread->text, (long)(sizeof thread->text - 1), 0, 0, 0);
  thread->text[got > 0 ? got : 0] = 0;
  return got;
}

static bool is_digit(char letter, int base, unsigned *value) {
  if (letter >= '0' && letter <= '9') *value = (unsigned)(letter - '0');
  else if (base == 16 && letter >= 'a' && letter <= 'f') *value = (unsigned)(letter - 'a' + 10);
  else return false;
  return true;
}

// Skips blanks and "0x", reads the number, and moves `*at` behind it. False: there is none.
static bool parse_number(const char **at, int base, uint64_t *number) {
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
void cunwind_parse_system_call(const char *text, cunwind_thread_status *thread_status) {
  uint64_t number = 0;
  thread_status->shows_system_call = true;
  thread_status->system_call = -1;
  bool is_outside = text[0] == '-' && text[1] == '1';
  if (is_outside) text += 2;
  else if (!parse_number(&text, 10, &number)) return;
  for (int index = 0; !is_outside && index < 6; index++) {
    if (!parse_number(&text, 16, &thread_status->arguments[index])) return;
  }
  if (!parse_number(&text, 16, &thread_status->stack_pointer) || !parse_number(&text, 16, &thread_status->pc)) return;
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
  if (!blocked || !parse_number(&blocked, 16, &thread_status->blocked_signals)) thread_status->blocked_signals = 0;
  thread_status->counts_switches = voluntary && involuntary &&
                                   parse_number(&voluntary, 10, &thread_status->voluntary_switches) &&
                                   parse_number(&involuntary, 10, &thread_status->involuntary_switches);
}

// proc_pid_stat(5): fields 3, 10, 12, 14, 15 and 19.
static void parse_stat(const char *text, cunwind_thread_status *thread_status) {
  const char *state = cunwind_behind_field(text, 2), *minor = cunwind_behind_field(text, 9),
             *major = cunwind_behind_field(text, 11), *ticks = cunwind_behind_field(text, 13),
             *nice = cunwind_behind_field(text, 18);
  if (!nice || !state || !parse_number(&minor, 10, &thread_status->minor_faults) ||
      !parse_number(&major, 10, &thread_status->major_faults) ||
      !parse_number(&ticks, 10, &thread_status->user_ticks) || !parse_number(&ticks, 10, &thread_status->system_ticks))
    return;
  thread_status->shows_stat = true;
  thread_status->state = state[1];
  thread_status->nice = (int32_t)strtol(nice, NULL, 10);
}

// Time on a CPU, time runnable, time slices. All are 0 if the kernel does not count them (proc_pid_schedstat).
static void parse_schedstat(const char *text, cunwind_thread_status *thread_status) {
  uint64_t on_cpu;
  if (!parse_number(&text, 10, &on_cpu) || !parse_number(&text, 10, &thread_status->run_queue) ||
      !parse_number(&text, 10, &thread_status->slices))
    thread_status->slices = 0;
}

// proc_pid_wchan(5): the kernel function in which the thread waits, or "0" if it waits in none or it is hidden.
static void parse_wait(const char *text, cunwind_thread_status *thread_status) {
  if (strcmp(text, "0") == 0) return;
  snprintf(thread_status->waits_in, sizeof thread_status->waits_in, "%.*s", (int)strcspn(text, "\n"), text);
}

// An open file of /proc/<tid> belongs to its thread: after the thread's end a read returns ESRCH, even if another
// thread has the id by then. If no file can be read, only the directory shows whether the thread exists.
bool cunwind_thread_is_there(const cunwind_thread *thread) {
  char first;
  for (int index = 0; index < CUNWIND_THREAD_FILES; index++) {
    int file = thread->files[index];
    if (file < 0) continue;
    if (cunwind_raw(SYS_pread64, file, (long)&first, 1, 0, 0, 0) == -ESRCH) return false;
    break;
  }
  return cunwind_thread_exists(thread->tid);
}

typedef void parsing(const char *text, cunwind_thread_status *thread_status);

static parsing *const parsers[CUNWIND_THREAD_FILES] = {parse_schedstat, parse_status, parse_stat,
                                                       cunwind_parse_system_call, parse_wait};

// Reads one file, if it is open and shows something. False: the thread has ended.
static bool read_one(cunwind_thread *thread, int index, cunwind_thread_status *thread_status) {
  long got = read_file(thread, index);
  if (got > 0) parsers[index](thread->text, thread_status);
  return got > 0 || (got != -ESRCH && cunwind_thread_exists(thread->tid));
}

bool cunwind_thread_read_status(cunwind_thread *thread, cunwind_thread_status *thread_status) {
  return read_one(thread, CUNWIND_FILE_STATUS, thread_status) && thread_status->state != 'Z' &&
         thread_status->state != 'X';
}

static bool read_system_call(cunwind_thread *thread, cunwind_thread_status *thread_status) {
  thread_status->is_blocked = thread_status->shows_system_call = false;
  thread_status->system_call = -1;
  return read_one(thread, CUNWIND_FILE_SYSCALL, thread_status);
}

cunwind_status cunwind_thread_inspect(cunwind_thread *thread, cunwind_thread_status *thread_status) {
  renew(thread);
  cunwind_thread_status *seen = &thread->seen;
  memset(seen, 0, sizeof *seen);
  seen->system_call = -1;
  bool has_ended = false, is_shown = false;
  for (int index = 0; index < CUNWIND_THREAD_FILES && !has_ended; index++) {
    long got = read_file(thread, index);
    if (got > 0) parsers[index](thread->text, seen);
    has_ended = got == -ESRCH;
    is_shown |= got > 0;
  }
  has_ended |= seen->state == 'Z' || seen->state == 'X' || (!is_shown && !cunwind_thread_exists(thread->tid));
  thread->is_inspected = !has_ended;
  *thread_status = *seen;
  return has_ended ? CUNWIND_NO_SUCH_THREAD : CUNWIND_OK;
}

// ---- The proof that a thread stayed blocked -------------------------------------------------------------------------
// The proof reads the count of time slices, then SP and PC, then the copy, then the count again. /proc shows SP and PC
// only for a thread that is off CPU (task_current_syscall waits until it is inactive), and the kernel counts a slice
// before the thread runs in it (sched_info_arrive). All of that takes 3 us, less than a wait for a fast disk.
//
// A kernel without CONFIG_SCHEDSTATS counts switches, not slices. Then the order is: switches, SP and PC, the copy, SP
// and PC, switches. A thread that was off CPU both times and ran in between was switched out once more, and the kernel
// counts that before it happens. This takes 15 us.

cunwind_status cunwind_thread_may_be_read(const cunwind_thread *thread) {
  const cunwind_thread_status *seen = &thread->seen;
  if (!seen->shows_system_call || (seen->slices == 0 && !seen->counts_switches)) return CUNWIND_NOT_SHOWN;
  return seen->is_blocked ? CUNWIND_OK : CUNWIND_NOT_BLOCKED;
}

cunwind_status cunwind_thread_before_read(cunwind_thread *thread) {
  cunwind_thread_status *seen = &thread->seen;
  memset(seen, 0, sizeof *seen);
  thread->is_inspected = false;
  if (!read_one(thread, CUNWIND_FILE_SCHEDSTAT, seen) ||
      (seen->slices == 0 && !cunwind_thread_read_status(thread, seen)) || !read_system_call(thread, seen))
    return CUNWIND_NO_SUCH_THREAD;
  return cunwind_thread_may_be_read(thread);
}

static bool is_the_same(const cunwind_thread_status *before, const cunwind_thread_status *after) {
  return after->is_blocked && before->system_call == after->system_call && before->pc == after->pc &&
         before->stack_pointer == after->stack_pointer &&
         memcmp(before->arguments, after->arguments, sizeof before->arguments) == 0 &&
         before->voluntary_switches == after->voluntary_switches &&
         before->involuntary_switches == after->involuntary_switches;
}

cunwind_status cunwind_thread_after_read(cunwind_thread *thread) {
  // Read the copy before the count: a thread that runs changes the count first.
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  cunwind_thread_status after;
  memset(&after, 0, sizeof after);
  if (thread->seen.slices != 0) {
    if (!read_one(thread, CUNWIND_FILE_SCHEDSTAT, &after)) return CUNWIND_NO_SUCH_THREAD;
    return after.slices == thread->seen.slices ? CUNWIND_OK : CUNWIND_MOVED;
  }
  if (!read_system_call(thread, &after) || !cunwind_thread_read_status(thread, &after)) return CUNWIND_NO_SUCH_THREAD;
  return is_the_same(&thread->seen, &after) ? CUNWIND_OK : CUNWIND_MOVED;
}

// A process may spread its threads over groups in cgroup v1, and in threaded groups of v2 (cgroups(7)).
bool cunwind_thread_is_in_other_group(cunwind_thread *thread) {
  uint64_t now = cunwind_now();
  if (now < thread->groups_until) return thread->is_in_other_group;
  thread->groups_until = now + GROUPS_NANOSECONDS;
  char path[CUNWIND_NUMBERED_PATH_BYTES];
  cunwind_number_path(path, "/proc/self/task/", (uint64_t)thread->tid, "/cgroup");
  size_t half = sizeof thread->text / 2;
  char *other = thread->text + half;
  thread->is_in_other_group = cunwind_read_text("/proc/thread-self/cgroup", thread->text, half) > 0 &&
                              cunwind_read_text(path, other, half) > 0 && strcmp(thread->text, other) != 0;
  return thread->is_in_other_group;
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
