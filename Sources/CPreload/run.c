// Watches the loops of a program that `stallwatch run` has started, with the monitor of the agent. The main thread runs
// only the constructor, which starts a thread that loads the monitor when the program has a loop, never without one.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "CPreload.h"
#include "glib.h"
#include "pool.h"
#include "process.h"

/// In nanoseconds.
#define SECOND UINT64_C(1000000000)
/// How long fork(2) waits for the thread that loads the monitor, in nanoseconds. Loading takes some 10 ms.
#define LONGEST_FORK_DELAY SECOND
/// How long the end of the program waits for that thread, in nanoseconds. To stop the monitor takes it 5 s at most.
#define LONGEST_END_DELAY (6 * SECOND)
/// How often the thread looks for new libraries, in nanoseconds: at first, after SOON and after LATE looks. As often as
/// after LATE looks it checks that GLib is still watched.
#define FIRST_INTERVAL 20000000
#define SOON 50
#define SOON_INTERVAL 100000000
#define LATE 150
#define LATE_INTERVAL 999999999
/// The least time between two looks, in nanoseconds.
#define LEAST_INTERVAL 1000000
#define TEXT_BYTES 1024

/// The functions of the agent: see startRun.swift.
struct agent {
  int (*start)(uint64_t threshold, int loops, const char *output, char *reason, long size);
  void *(*watch_glib)(const struct cpreload_range *functions, long count, int (*is_followed)(void),
                      void (*source)(char *name, long size), char *reason, long size);
  long (*finish)(int thread, char *text, long size);
  void (*begin_turn)(void *), (*end_turn)(void *);
};

/// The settings, copied before the thread starts.
static char library[PATH_MAX], output[PATH_MAX];
static uint64_t threshold;
static int loops;
static bool is_quiet;
/// The process that is watched: a child of fork(2) has another id.
static pid_t watched_process;
/// Standard error at the start. The program may close it, and open something else with its number.
static struct stat standard_error;
static bool has_standard_error;

/// Held while the thread loads, starts or stops the monitor, so that fork(2) does not come between.
static pthread_mutex_t work = PTHREAD_MUTEX_INITIALIZER;
/// Whether the thread that calls fork(2) holds `work`.
static _Thread_local bool holds_work;
/// What the thread has done, protected by `work`.
static struct agent agent;
static bool is_agent_loaded, is_started, is_glib_watched;
/// A reason for having no reports, and what the monitor has found, for the end of the program; empty if there is none.
static char notice[TEXT_BYTES], summary[TEXT_BYTES];
/// Posted when the program ends, and when the monitor has stopped.
static sem_t is_ending, has_finished;
/// The thread that ends the program.
static pid_t ending_thread;

/// Counts the libraries that have been loaded since the program started.
static int count_loads(struct dl_phdr_info *info, size_t size, void *count) {
  (void)size;
  *(unsigned long long *)count = info->dlpi_adds;
  return 1;
}

/// Whether the program's malloc is another one than the C library's.
static bool has_own_malloc(void) {
  void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  bool is_other = !libc || dlsym(libc, "malloc") != dlsym(RTLD_DEFAULT, "malloc");
  if (libc) dlclose(libc);
  return is_other;
}

/// The signals that the Swift runtime handles, to print stacks of crashes (Backtrace.cpp and CrashHandlerLinux.cpp).
static const int crash_signals[] = {SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
#define CRASH_SIGNALS (sizeof crash_signals / sizeof *crash_signals)

/// Takes back the crash handlers of the Swift runtime in a program without it, so that it crashes in its own way.
static void restore_crash_handlers(const struct sigaction *before) {
  for (size_t index = 0; index < CRASH_SIGNALS; index++) {
    struct sigaction now;
    Dl_info info;
    if (sigaction(crash_signals[index], NULL, &now) != 0 || now.sa_handler == before[index].sa_handler) continue;
    // The program may have installed one of its own meanwhile.
    if (!dladdr((void *)now.sa_handler, &info) || !strstr(info.dli_fname, "/libswiftCore.so")) continue;
    sigaction(crash_signals[index], &before[index], NULL);
  }
}

/// Loads the agent. Returns whether it has all functions; else `notice` says why not.
static bool load_agent(void) {
  bool has_swift = cpreload_is_loaded("libswiftCore.so");
  int flags = RTLD_NOW | RTLD_LOCAL;
  // In a Swift program, modules of the agent may be in the program's libraries, too, in other versions: each copy keeps to
  // its own functions. But what one allocator has allocated must not be freed by another one, and the sanitizers, which
  // have allocators of their own, do not permit it.
  if (has_swift && !has_own_malloc()) flags |= RTLD_DEEPBIND;
  struct sigaction before[CRASH_SIGNALS];
  for (size_t index = 0; index < CRASH_SIGNALS; index++) sigaction(crash_signals[index], NULL, &before[index]);
  void *handle = dlopen(library, flags);
  if (!has_swift) restore_crash_handlers(before);
  if (!handle) {
    const char *error = dlerror();
    snprintf(notice, sizeof notice, "the monitor could not be loaded: %s",
             error ? error : "the linker gives no reason");
    return false;
  }
  *(void **)&agent.start = dlsym(handle, "stallwatch_run_start");
  *(void **)&agent.watch_glib = dlsym(handle, "stallwatch_run_watch_glib");
  *(void **)&agent.finish = dlsym(handle, "stallwatch_run_finish");
  *(void **)&agent.begin_turn = dlsym(handle, "stallwatch_begin_turn");
  *(void **)&agent.end_turn = dlsym(handle, "stallwatch_end_turn");
  is_agent_loaded = agent.start && agent.watch_glib && agent.finish && agent.begin_turn && agent.end_turn;
  if (is_agent_loaded) return true;
  snprintf(notice, sizeof notice, "the monitor could not be used: its library is of another version than the tool");
  return false;
}

/// Loads and starts the monitor, unless it runs. Returns whether it runs.
static bool start_monitor(int watched) {
  if (is_started) return true;
  if (!is_agent_loaded && cpreload_needs_main_thread()) {
    // Or there is a reason already, from the start.
    if (!*notice) snprintf(notice, sizeof notice, "it is not watched: it loads libdispatch, without Foundation, later");
    return false;
  }
  if (!is_agent_loaded && !load_agent()) return false;
  is_started = agent.start(threshold, watched, output, notice, sizeof notice) == 0;
  return is_started;
}

static bool start_watching_glib(void) {
  if (!start_monitor(0)) return false;
  struct cpreload_range functions[CPRELOAD_GLIB_FUNCTIONS];
  cpreload_glib_functions(functions);
  void *handle = agent.watch_glib(functions, CPRELOAD_GLIB_FUNCTIONS, cpreload_glib_is_watched, cpreload_glib_source,
                                  notice, sizeof notice);
  if (!handle) return false;
  cpreload_watch_glib(handle, agent.begin_turn, agent.end_turn);
  return is_glib_watched = true;
}

/// Looks for loops that are not watched yet. Returns whether to look again later.
static bool look(void) {
  int main_loops = loops & (CPRELOAD_LOOP_RUN_LOOP | CPRELOAD_LOOP_MAIN_QUEUE);
  // Once the agent is loaded, its own libraries are no sign of a main queue.
  if (main_loops && !is_started && cpreload_is_loaded("libdispatch.so") && !start_monitor(main_loops)) return false;
  if (!(loops & CPRELOAD_LOOP_GLIB)) return !is_started;
  if (is_glib_watched) {
    if (cpreload_glib_is_watched()) return true;
    snprintf(notice, sizeof notice,
             "the program has set a poll function of its own, so its GLib loop was not watched any more");
    cpreload_unwatch_glib();
    return false;
  }
  return !cpreload_find_glib() || start_watching_glib();
}

/// Returns the monotonic time in some nanoseconds.
static struct timespec after(uint64_t interval) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  uint64_t nanoseconds = (uint64_t)time.tv_nsec + interval;
  time.tv_sec += (time_t)(nanoseconds / SECOND);
  time.tv_nsec = (long)(nanoseconds % SECOND);
  return time;
}

/// Waits for a semaphore, without end if there is no `interval`, in nanoseconds. Returns whether it was posted.
static bool wait_for(sem_t *semaphore, uint64_t interval) {
  struct timespec until = after(interval);
  int status;
  do status = interval ? sem_clockwait(semaphore, CLOCK_MONOTONIC, &until) : sem_wait(semaphore);
  while (status != 0 && errno == EINTR);
  return status == 0;
}

static void finish(void) {
  pthread_mutex_lock(&work);
  if (is_glib_watched) cpreload_unwatch_glib();
  if (is_started && agent.finish(ending_thread, summary, sizeof summary) == 0) *summary = 0;
  pthread_mutex_unlock(&work);
  sem_post(&has_finished);
}

static void *watch(void *context) {
  (void)context;
  pthread_setname_np(pthread_self(), "stallwatch-run");
  unsigned long long seen = 0;
  bool goes_on = true;
  for (int count = 0;; count++) {
    unsigned long long loads = 0;
    dl_iterate_phdr(count_loads, &loads);
    if (loads != seen || is_glib_watched) {
      pthread_mutex_lock(&work);
      goes_on = look();
      pthread_mutex_unlock(&work);
      // Those that the monitor has loaded itself count, too: one look more.
      seen = loads;
    }
    long interval = is_glib_watched || count >= LATE ? LATE_INTERVAL : count >= SOON ? SOON_INTERVAL : FIRST_INTERVAL;
    if (wait_for(&is_ending, goes_on ? (uint64_t)interval : 0)) break;
    // By a clock that the program's user makes stand or go slowly (faketime(1)), no wait lasts.
    usleep(LEAST_INTERVAL / 1000);
  }
  finish();
  return NULL;
}

static void before_fork(void) {
  struct timespec until = after(LONGEST_FORK_DELAY);
  holds_work = pthread_mutex_clocklock(&work, CLOCK_MONOTONIC, &until) == 0;
}

static void after_fork(void) {
  if (holds_work) pthread_mutex_unlock(&work);
  holds_work = false;
}

/// No thread of the monitor exists in the child, whose id may be the parent's: each PID namespace has a process 1.
static void after_fork_in_child(void) {
  watched_process = 0;
  cpreload_forget_glib();
  after_fork();
}

/// How long a line waits for a reader of the standard error, in milliseconds.
#define LONGEST_WAIT_FOR_READER 100

/// Writes a line to standard error, if that is still the file that it was at the start.
static void say(const char *text) {
  struct stat now;
  if (is_quiet || !*text || !has_standard_error || fstat(STDERR_FILENO, &now) != 0) return;
  if (now.st_dev != standard_error.st_dev || now.st_ino != standard_error.st_ino) return;
  char line[2 * TEXT_BYTES];
  int length = snprintf(line, sizeof line, "stallwatch: %.100s: %s\n", program_invocation_short_name, text);
  if (length < 0 || (size_t)length >= sizeof line) return;
  // A program's or a folder's name may have any character: a terminal would obey some.
  for (int index = 0; index < length - 1; index++) {
    if ((unsigned char)line[index] < ' ' || line[index] == 0x7f) line[index] = '?';
  }
  // Neither a reader that has gone nor one that does not read may end or hold the program.
  struct pollfd place = {.fd = STDERR_FILENO, .events = POLLOUT};
  sigset_t fatal, before, pending;
  sigemptyset(&fatal);
  sigaddset(&fatal, SIGPIPE);
  sigaddset(&fatal, SIGXFSZ);
  // Blocked, it stops no background program that writes to its terminal (termios(3), TOSTOP).
  sigaddset(&fatal, SIGTTOU);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &fatal, &before);
  if (poll(&place, 1, LONGEST_WAIT_FOR_READER) == 1) {
    // Nothing is left to do if this fails. What fits a pipe is taken whole.
    ssize_t written = write(STDERR_FILENO, line, (size_t)length);
    (void)written;
  }
  for (int index = 0; index < 2; index++) {
    int number = index == 0 ? SIGPIPE : SIGXFSZ;
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, number);
    // Sent to this thread by the write.
    if (!sigismember(&pending, number)) sigtimedwait(&own, NULL, &(struct timespec){0, 0});
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/// Stands in for daemon(3), whose child is unwatched: without a word the program would seem to have no stalls.
int daemon(int keeps_directory, int keeps_streams) {
  if (watched_process != 0 && getpid() == watched_process)
    say("it goes on as a daemon, in a child process, which is not watched: let it run in the foreground");
  int (*real)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "daemon");
  if (real) return real(keeps_directory, keeps_streams);
  errno = ENOSYS;
  return -1;
}

/// The linker runs destructors of libraries that were loaded later, such as the monitor's, last.
///
/// The monitor stops on its own thread: this one may be in a signal handler that has interrupted malloc(3).
__attribute__((destructor)) static void end(void) {
  if (getpid() != watched_process) return;
  ending_thread = gettid();
  sem_post(&is_ending);
  if (!wait_for(&has_finished, LONGEST_END_DELAY)) return;
  say(notice);
  say(summary);
}

__attribute__((constructor)) static void begin(void) {
  int includes_children, quiet;
  const char *settings = getenv(CPRELOAD_RUN_SETTINGS);
  if (!settings || !cpreload_copy_variable(CPRELOAD_RUN_LIBRARY, library)) return;
  if (!cpreload_copy_variable(CPRELOAD_RUN_OUTPUT, output)) return;
  if (sscanf(settings, "%" SCNu64 " %d %d %d", &threshold, &loops, &includes_children, &quiet) != 4) return;
  // env(1) only becomes another program: the one that a script's first line names.
  if (strcmp(program_invocation_short_name, "env") == 0) return;
  is_quiet = quiet != 0;
  // The tool starts no program that has the runtime linked into it.
  cpreload_narrow_pool();
  if (!includes_children) {
    unsetenv(CPRELOAD_POOL);
    cpreload_leave_environment();
    unsetenv(CPRELOAD_RUN_LIBRARY);
    unsetenv(CPRELOAD_RUN_OUTPUT);
    unsetenv(CPRELOAD_RUN_SETTINGS);
  }
  has_standard_error = fstat(STDERR_FILENO, &standard_error) == 0;
  // This is the main thread.
  if (cpreload_needs_main_thread()) load_agent();
  if (pthread_atfork(before_fork, after_fork, after_fork_in_child) != 0) return;
  if (sem_init(&is_ending, 0, 0) != 0 || sem_init(&has_finished, 0, 0) != 0) return;
  if (cpreload_start_thread(watch) == 0) watched_process = getpid();
  else say("it is not watched: the system refuses it another thread");
}
