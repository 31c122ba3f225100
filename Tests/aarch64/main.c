// Runs all checks. As the first process of a machine it mounts what they need, and turns the machine off at the end.

#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
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

static int run(void) {
  static void (*const groups[])(void) = {check_late_stop, check_calls,  check_states, check_damage,  check_faults,
                                         check_refusals,  check_images, check_stress, check_symbols, check_steppers};
  struct utsname system;
  double began = seconds_now();
  uname(&system);
  // These two come first: later checks install handlers, and on aarch64 a program with handlers may get EINTR.
  for (size_t index = 0; index < sizeof groups / sizeof groups[0]; index++) {
    groups[index]();
    printf("after %.0f s\n", seconds_now() - began);
  }
  printf(
      "%s, Linux %s: %u of %u checks passed; %llu whole stacks, %llu incomplete; %llu captured calls: "
      "%llu EINTR, %llu where calls cannot begin again, %llu early; %.0f s\n",
      system.machine, system.release, checked.passed, checked.passed + checked.failed, COUNT(checked.captures),
      COUNT(checked.incomplete), COUNT(checked.calls), COUNT(checked.interrupted), COUNT(checked.interrupted_bare),
      COUNT(checked.early), seconds_now() - began);
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
