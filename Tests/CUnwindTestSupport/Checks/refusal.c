// Captures in a child process under a seccomp filter, as in many containers.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "Support/bounded.h"
#include "Support/checks.h"
#include "Support/seccomp_filter.h"
#include "System/raw_system_call.h"

static void capture_without_ptrace(int error) {
  cunwind_test_subject subject;
  int probe_error = 0;
  EXPECT(cunwind_test_refuse(SYS_ptrace, cunwind_test_refusal_by(error)) == 0);
  if (!cunwind_test_subject_start(&subject, CUNWIND_TEST_SPINNING, 3, SIGPROF)) return;
  EXPECT(cunwind_engine_probe_stop(subject.engine, subject.tid, &probe_error) == CUNWIND_REFUSED);
  EXPECT(probe_error == EPERM);
  EXPECT(cunwind_test_capture(&subject, cunwind_capture_stop) == CUNWIND_REFUSED && subject.info.error == EPERM);
  EXPECT(cunwind_test_is_whole(cunwind_test_capture(&subject, cunwind_capture_signal)));
  EXPECT(cunwind_test_subject_stop(&subject) > 0);
  if (!cunwind_test_subject_start(&subject, CUNWIND_TEST_IN_ALLOCA, 3, SIGPROF)) return;
  EXPECT(cunwind_test_is_whole(cunwind_test_capture(&subject, cunwind_capture_read)));
  EXPECT(cunwind_test_subject_stop(&subject) > 0);
}

// Service managers' filters kill by default, and the helper that they would kill shares the app's memory.
void cunwind_check_refused_ptrace(int error) { cunwind_test_expect_in_child(capture_without_ptrace, error); }

// Follows `tid` in a child process, as a debugger does, until that is killed. 0: it could not. `*ready` becomes true.
static pid_t follow(pid_t tid, volatile bool *ready) {
  pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0) _exit(1);
    *ready = true;
    for (;;) pause();
  }
  // 10 s at most.
  for (int tries = 0; child > 0 && tries < 10000 && !*ready; tries++) usleep(1000);
  return child > 0 && *ready ? child : 0;
}

// As strace or a debugger does for a while.
void cunwind_check_traced_thread(int unused) {
  (void)unused;
  cunwind_test_allow_tracing();
  volatile bool *ready = mmap(NULL, sizeof *ready, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  cunwind_test_subject subject;
  if (!EXPECT(ready != MAP_FAILED) || !cunwind_test_subject_start(&subject, CUNWIND_TEST_SPINNING, 3, SIGPROF)) return;
  pid_t tracer = follow(subject.tid, ready);
  if (EXPECT(tracer > 0)) {
    EXPECT(cunwind_test_capture(&subject, cunwind_capture_stop) == CUNWIND_REFUSED && subject.info.error == EBUSY);
    kill(tracer, SIGKILL);
    int ignored;
    cunwind_test_await_child(tracer, &ignored);
    EXPECT(cunwind_test_capture(&subject, cunwind_capture_stop) == CUNWIND_OK);
  }
  cunwind_test_subject_stop(&subject);
  munmap((void *)ready, sizeof *ready);
}

enum { PRIORITY = 10 };

// Starts a real-time thread that spins. False: it could not, or the system gives it no priority.
static bool start_realtime(cunwind_test_subject *subject) {
  if (!cunwind_test_subject_start(subject, CUNWIND_TEST_SPINNING, 3, SIGPROF)) return false;
  EXPECT(cunwind_priority_over(subject->tid) == 0);
  struct sched_param own = {.sched_priority = PRIORITY};
  if (sched_setscheduler(subject->tid, SCHED_RR, &own) == 0) return true;
  cunwind_test_say("not run: no real-time priority is permitted");
  cunwind_test_subject_stop(subject);
  return false;
}

// Otherwise another real-time thread may take the helper's CPU while the thread is stopped.
void cunwind_check_realtime_thread(int unused) {
  (void)unused;
  cunwind_test_subject subject;
  if (!start_realtime(&subject)) return;
  EXPECT(cunwind_priority_over(subject.tid) == PRIORITY + 1);
  EXPECT(cunwind_test_is_whole(cunwind_test_capture(&subject, cunwind_capture_stop)));
  // The caller keeps its own.
  EXPECT(sched_getscheduler(0) == SCHED_OTHER);
  EXPECT(cunwind_test_subject_stop(&subject) > 0);
}

static void capture_without_rank(int error) {
  cunwind_test_subject subject;
  EXPECT(cunwind_test_refuse(SYS_sched_setattr, cunwind_test_refusal_by(error)) == 0);
  if (!start_realtime(&subject)) return;
  EXPECT(cunwind_test_capture(&subject, cunwind_capture_stop) == CUNWIND_REFUSED && subject.info.error == EBUSY);
  // Others may be stopped.
  struct sched_param none = {0};
  EXPECT(sched_setscheduler(subject.tid, SCHED_OTHER, &none) == 0);
  EXPECT(cunwind_test_is_whole(cunwind_test_capture(&subject, cunwind_capture_stop)));
  EXPECT(cunwind_test_subject_stop(&subject) > 0);
}

void cunwind_check_outranked_helper(int error) { cunwind_test_expect_in_child(capture_without_rank, error); }

static void capture_with_nice(int nice) {
  cunwind_test_subject subject;
  if (!cunwind_test_subject_start(&subject, CUNWIND_TEST_SPINNING, 3, SIGPROF)) return;
  EXPECT(setpriority(PRIO_PROCESS, 0, nice) == 0);
  EXPECT(cunwind_test_capture(&subject, cunwind_capture_stop) == CUNWIND_REFUSED && subject.info.error == EBUSY);
  // One of the same value may be stopped.
  EXPECT(setpriority(PRIO_PROCESS, (id_t)subject.tid, nice) == 0);
  EXPECT(cunwind_test_is_whole(cunwind_test_capture(&subject, cunwind_capture_stop)));
  EXPECT(cunwind_test_subject_stop(&subject) > 0);
}

// Otherwise other threads could take the helper's CPU while the thread is stopped.
void cunwind_check_weak_helper(int nice) { cunwind_test_expect_in_child(capture_with_nice, nice); }

static bool put(const char *directory, const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  int file = open(path, O_WRONLY | O_CLOEXEC);
  bool is_done = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
  if (file >= 0) close(file);
  return is_done;
}

// Moves a thread to a new control group of its own, whose directory it stores; cgroup v1, or a threaded group of v2.
static bool move_to_group(pid_t tid, char *directory, size_t size) {
  static const char *const places[][2] = {{"/sys/fs/cgroup/cpu", "tasks"}, {"/sys/fs/cgroup", "cgroup.threads"}};
  char thread[16];
  snprintf(thread, sizeof thread, "%d", (int)tid);
  for (int index = 0; index < 2; index++) {
    snprintf(directory, size, "%s/stallwatch-test-%d", places[index][0], (int)getpid());
    if (mkdir(directory, 0700) != 0) continue;
    put(directory, "cgroup.type", "threaded");
    if (put(directory, places[index][1], thread)) return true;
    rmdir(directory);
  }
  return false;
}

// Otherwise a quota of the captor's group could keep the helper from its CPU while the thread is stopped.
void cunwind_check_other_group(int unused) {
  (void)unused;
  cunwind_test_subject subject;
  char directory[128];
  if (!cunwind_test_subject_start(&subject, CUNWIND_TEST_SPINNING, 3, SIGPROF)) return;
  bool has_moved = move_to_group(subject.tid, directory, sizeof directory);
  if (has_moved) {
    EXPECT(cunwind_test_capture(&subject, cunwind_capture_stop) == CUNWIND_REFUSED && subject.info.error == EBUSY);
    EXPECT(subject.info.held_nanoseconds == 0);
    EXPECT(cunwind_test_is_whole(cunwind_test_capture(&subject, cunwind_capture_signal)));
  } else {
    cunwind_test_say("not run: no control group can be made");
  }
  EXPECT(cunwind_test_subject_stop(&subject) > 0);
  // The thread leaves its group some time after pthread_join(3); 10 s at most.
  for (int tries = 0; has_moved && tries < 10000 && rmdir(directory) != 0; tries++) usleep(1000);
}

#define MEMORY_BYTES (64ul << 20)

static uint64_t page_faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (uint64_t)usage.ru_minflt;
}

static const uint32_t actions[] = {SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP,
                                   SECCOMP_RET_ERRNO | EPERM};

// Tries the rare calls with two threads, under filters for two of them.
static void try_calls(int argument) {
  uint32_t action = actions[argument / 2], deadly = 0;
  bool shares_memory = argument % 2;
  EXPECT(cunwind_test_refuse(SYS_process_vm_readv, action) == 0);
  EXPECT(cunwind_test_refuse(SYS_rt_tgsigqueueinfo, action) == 0);
  void *memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  // A copy of a huge page would be one fault.
  if (!EXPECT(memory != MAP_FAILED && madvise(memory, MEMORY_BYTES, MADV_NOHUGEPAGE) == 0)) return;
  memset(memory, 1, MEMORY_BYTES);
  cunwind_test_thread *thread = cunwind_test_thread_start(CUNWIND_TEST_SPINNING, 3);
  if (!EXPECT(thread)) return;
  uint64_t before = page_faults();
  EXPECT(cunwind_try_rare_calls(shares_memory, &deadly));
  memset(memory, 2, MEMORY_BYTES);
  uint64_t faults = page_faults() - before;
  uint32_t filtered = 1u << CUNWIND_CALL_READ_MEMORY | 1u << CUNWIND_CALL_QUEUE_SIGNAL;
  cunwind_test_say("calls %#x are deadly, %llu page faults; ", deadly, COUNT(faults));
  EXPECT(deadly == (action == (SECCOMP_RET_ERRNO | EPERM) ? 0 : filtered));
  // 64 MB are 16,384 pages: the app pays for a copy of them with a fault each.
  EXPECT(shares_memory ? faults < 100 : faults > 16000);
  EXPECT(!cunwind_call_is_deadly(CUNWIND_CALL_PTRACE));
  EXPECT(cunwind_test_refuse(SYS_ptrace, SECCOMP_RET_KILL_PROCESS) == 0);
  // A filter more is another answer.
  EXPECT(cunwind_call_is_deadly(CUNWIND_CALL_PTRACE));
  cunwind_test_thread_stop(thread);
}

void cunwind_check_deadly_calls(int index) {
  for (int shares_memory = 0; shares_memory < 2; shares_memory++)
    cunwind_test_expect_in_child(try_calls, index * 2 + shares_memory);
}

static void add_filter(int unused) {
  uint64_t word = 0x5a5a, copy = 0;
  (void)unused;
  EXPECT(cunwind_test_refuse(SYS_sched_setattr, SECCOMP_RET_ERRNO | EPERM) == 0);
  EXPECT(!cunwind_call_is_deadly(CUNWIND_CALL_PTRACE));
  // Like the filters of programs that decode foreign data: they have their threads by then.
  EXPECT(cunwind_test_refuse(SYS_clone, SECCOMP_RET_KILL_PROCESS) == 0);
  for (int call = 0; call < CUNWIND_RARE_CALLS; call++) EXPECT(cunwind_call_is_deadly((cunwind_rare_call)call));
  EXPECT(cunwind_read_memory((uint64_t)(uintptr_t)&word, &copy, sizeof copy) && copy == word);
  EXPECT(cunwind_memory_access_in_use() != CUNWIND_MEMORY_CALL);
  EXPECT(cunwind_thread_pointer(0, getpid()) == 0);
}

void cunwind_check_newer_filter(int unused) { cunwind_test_expect_in_child(add_filter, unused); }
