// Runs a program and counts its first thread's system calls between two marks: calls of close(2) with -4711.
//
//     count_calls PROGRAM ARGUMENT...
//
// After the program's own output, prints `S <calls>` and one line `  <number> <calls>` per kind of call. Exits with the
// program's status. Other threads are not traced, because PTRACE_O_TRACECLONE is not set.

#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MARK = -4711, MAX_CALLS = 1024 };

static long counts[MAX_CALLS];
static int marks;

static void count(pid_t thread) {
  struct __ptrace_syscall_info info;
  // Returns the number of bytes available, or -1 (ptrace(2)).
  if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0) return;
  if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return;
  if (info.entry.nr == SYS_close && (int)info.entry.args[0] == MARK) {
    marks++;
  } else if (marks == 1 && info.entry.nr < MAX_CALLS) {
    counts[info.entry.nr]++;
  }
}

static int finish(int status) {
  long all = 0;
  for (int call = 0; call < MAX_CALLS; call++) all += counts[call];
  if (marks == 2) printf("S %ld\n", all);
  for (int call = 0; call < MAX_CALLS; call++) {
    if (counts[call]) printf("  %d %ld\n", call, counts[call]);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv) {
  if (argc < 2) return 64;
  pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0) _exit(126);
    execv(argv[1], argv + 1);
    _exit(127);
  }
  int status;
  // The first stop is at execve (ptrace(2)).
  if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status)) return 1;
  if (ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) < 0) return 1;
  long signal = 0;
  for (;;) {
    if (ptrace(PTRACE_SYSCALL, child, NULL, (void *)signal) < 0) return 1;
    if (waitpid(child, &status, 0) < 0) return 1;
    if (!WIFSTOPPED(status)) return finish(status);
    signal = WSTOPSIG(status);
    if (signal == (SIGTRAP | 0x80)) {
      count(child);
      signal = 0;
    }
  }
}
