// Runs all checks. As the first process of a machine it mounts what they need, and turns the machine off at the end.

#define _GNU_SOURCE
#include <CUnwindTestSupport.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "checks.h"

totals checked;

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void check(bool is_right, const char *name, const char *details, ...) {
  va_list arguments;
  va_start(arguments, details);
  printf("%s %s: ", is_right ? "passed" : "FAILED", name);
  vprintf(details, arguments);
  printf("\n");
  va_end(arguments);
  *(is_right ? &checked.passed : &checked.failed) += 1;
}

#define YAMA "/proc/sys/kernel/yama"

// The status of a probe by an ordinary user under Yama's scope 1, without the file that says so.
static int probe_under_hidden_yama(void) {
  int error = 0, file = open(YAMA "/ptrace_scope", O_WRONLY | O_CLOEXEC);
  if (file < 0 || write(file, "1", 1) != 1 || close(file) != 0) return 101;
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return 102;
  if (mount("tmpfs", YAMA, "tmpfs", 0, NULL) != 0) return 103;
  // A process that changes its user is not dumpable.
  if (setresuid(1000, 1000, 1000) != 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) return 104;
  if (access(YAMA "/ptrace_scope", F_OK) == 0) return 105;
  cunwind_engine *engine = cunwind_test_engine(SIGPROF);
  cunwind_test_thread *thread = cunwind_test_thread_start(CUNWIND_TEST_SPINNING, 1);
  return engine && thread ? (int)cunwind_engine_probe_stop(engine, cunwind_test_thread_tid(thread), &error) : 106;
}

static void check_hidden_yama(void) {
  if (access(YAMA, F_OK) != 0 || geteuid() != 0) {
    printf("not run: Yama needs a kernel with it, and root\n");
    return;
  }
  pid_t child = fork();
  if (child == 0) _exit(probe_under_hidden_yama());
  int status = -1;
  if (child > 0) waitpid(child, &status, 0);
  check(WIFEXITED(status) && WEXITSTATUS(status) == CUNWIND_OK, "a stop works under Yama whose file is hidden",
        "status %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static int run(void) {
  struct utsname system;
  double began = seconds_now();
  uname(&system);
  setenv("STALLWATCH_EMULATED", "1", 1);
  // They come first: some of the table's checks install handlers, and on aarch64 a program with handlers may get EINTR.
  check_calls();
  for (size_t index = 0; index < cunwind_test_check_count(); index++) {
    bool has_passed = false;
    cunwind_test_check row = cunwind_test_check_at(index);
    const char *text = cunwind_test_run_check(index, &has_passed);
    check(has_passed, row.name, "(%d) %s; after %.0f s", row.argument, text, seconds_now() - began);
  }
  check_hidden_yama();
  check_symbols();
  printf(
      "%s, Linux %s: %u of %u checks passed; %llu captured calls: %llu incomplete stacks, "
      "%llu EINTR, %llu where calls cannot begin again, %llu early; %.0f s\n",
      system.machine, system.release, checked.passed, checked.passed + checked.failed, COUNT(checked.calls),
      COUNT(checked.incomplete), COUNT(checked.interrupted), COUNT(checked.interrupted_bare), COUNT(checked.early),
      seconds_now() - began);
  return checked.failed == 0 && checked.passed > 0 ? 0 : 1;
}

static bool mount_on(const char *type, const char *directory) {
  mkdir(directory, 0755);
  if (mount(type, directory, type, 0, NULL) == 0) return true;
  printf("cannot mount %s: %s\n", directory, strerror(errno));
  return false;
}

// The line with "exit status" is the last one, and the script that started the machine looks for it.
static void be_first_process(void) {
  int status = -1;
  bool is_mounted = mount_on("proc", "/proc") && mount_on("sysfs", "/sys") && mount_on("devtmpfs", "/dev") &&
                    mount_on("tmpfs", "/tmp");
  pid_t child = is_mounted ? fork() : -1;
  if (child == 0) _exit(run());
  // Orphans of the tests become children of this process.
  for (pid_t ended = 0; child > 0 && ended != child;) ended = waitpid(-1, &status, 0);
  if (child > 0 && WIFSIGNALED(status)) printf("ended by signal %d\n", WTERMSIG(status));
  printf("exit status %d\n", child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 70);
  reboot(RB_POWER_OFF);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (getpid() != 1) return run();
  be_first_process();
}
