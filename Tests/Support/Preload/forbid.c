// Preloaded into a program, forbids system calls before its first thread starts (seccomp(2)). FORBID_CALLS: calls that
// fail with an error number each, such as "ptrace:1,perf_event_open:38"; "nothing:1" is a filter that allows all.
// FORBID_SIGNALS: a system call that sends a signal kills the process with SIGSYS, so a normal exit proves that none was
// sent. The filter also applies to all threads and children.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void forbid(const int *calls, size_t count, unsigned action) {
  for (size_t index = 0; index < count; index++) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[index], 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof rules / sizeof rules[0], rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) < 0) {
      perror("seccomp");
      _exit(125);
    }
  }
}

static const struct {
  const char *name;
  int number;
} known_calls[] = {
    {"ptrace", SYS_ptrace},
    {"process_vm_readv", SYS_process_vm_readv},
    {"perf_event_open", SYS_perf_event_open},
    {"fsync", SYS_fsync},
    {"fdatasync", SYS_fdatasync},
    {"nothing", -1},
};

static void forbid_listed(const char *list) {
  for (const char *at = list; *at;) {
    size_t length = strcspn(at, ":"), known = 0;
    while (known < sizeof known_calls / sizeof known_calls[0] &&
           (strlen(known_calls[known].name) != length || strncmp(known_calls[known].name, at, length) != 0))
      known++;
    if (known == sizeof known_calls / sizeof known_calls[0] || at[length] == 0) {
      fprintf(stderr, "FORBID_CALLS: %s is not known\n", at);
      _exit(125);
    }
    forbid(&known_calls[known].number, 1, SECCOMP_RET_ERRNO | (unsigned)atoi(at + length + 1));
    at += strcspn(at, ",");
    at += *at == ',';
  }
}

__attribute__((constructor)) static void forbid_what_is_asked(void) {
  static const int signalling[] = {
      SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal,
  };
  if (getenv("FORBID_CALLS")) forbid_listed(getenv("FORBID_CALLS"));
  if (getenv("FORBID_SIGNALS")) {
    forbid(signalling, sizeof signalling / sizeof signalling[0], SECCOMP_RET_KILL_PROCESS);
  }
}
