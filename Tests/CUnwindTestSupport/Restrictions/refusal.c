// Captures in a child process under a seccomp filter, as in many containers.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"
#include "Restrictions/seccomp_filter.h"
#include "Support/bounded.h"
#include "System/raw_system_call.h"

static uint32_t refusal(bool kills) { return cunwind_test_refusal_by(kills ? 0 : EPERM); }

static void capture_without_ptrace(cunwind_test_refusal_result *result) {
  static cunwind_stack stack;
  cunwind_capture_info info;
  cunwind_engine *engine = cunwind_test_engine(SIGPROF);
  if (!engine) _exit(2);
  cunwind_engine_refresh_images(engine);
  result->probe_status = cunwind_engine_probe_stop(engine, &result->probe_error);

  cunwind_test_thread *thread_state = cunwind_test_thread_start(CUNWIND_TEST_SPINNING, 3);
  cunwind_thread *thread =
      thread_state ? cunwind_thread_open(cunwind_test_thread_tid(thread_state), CUNWIND_ALL_THREAD_FILES, NULL) : NULL;
  if (!thread) _exit(3);
  result->stop_status = cunwind_capture_stop(engine, thread, &stack, &info);
  result->stop_error = info.error;
  result->signal_status = cunwind_capture_signal(engine, thread, &stack, &info);
  result->signal_is_complete = stack.frame_count > 0 && stack.end == CUNWIND_END_COMPLETE;
  cunwind_thread_close(thread);
  cunwind_test_thread_stop(thread_state);

  thread_state = cunwind_test_thread_start(CUNWIND_TEST_IN_ALLOCA, 3);
  thread =
      thread_state ? cunwind_thread_open(cunwind_test_thread_tid(thread_state), CUNWIND_ALL_THREAD_FILES, NULL) : NULL;
  if (!thread) _exit(4);
  // The thread repeats polls of 20 ms, so a capture can find it between two of them.
  for (int tries = 0; tries < 10; tries++) {
    result->read_status = cunwind_capture_read(engine, thread, &stack, &info);
    if (result->read_status == CUNWIND_OK) break;
    usleep(1000);
  }
  result->read_is_complete = stack.frame_count > 0 && stack.end == CUNWIND_END_COMPLETE;
  cunwind_thread_close(thread);
  cunwind_test_thread_stop(thread_state);
  cunwind_engine_destroy(engine);
}

bool cunwind_test_refusal(bool kills, cunwind_test_refusal_result *result) {
  void *shared = mmap(NULL, sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return false;
  pid_t child = fork();
  if (child == 0) {
    if (cunwind_test_refuse(SYS_ptrace, refusal(kills)) < 0) _exit(1);
    capture_without_ptrace(shared);
    _exit(0);
  }
  int status = -1;
  if (child > 0) cunwind_test_await_child(child, &status);
  memcpy(result, shared, sizeof *result);
  munmap(shared, sizeof *result);
  if (child > 0 && status != 0) errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
  return child > 0 && status == 0;
}

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

int cunwind_test_stop_of_traced(int *error, int *second) {
  static cunwind_stack stack;
  cunwind_capture_info info;
  cunwind_test_allow_tracing();
  volatile bool *ready = mmap(NULL, sizeof *ready, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  cunwind_engine *engine = cunwind_test_engine(SIGPROF);
  cunwind_test_thread *thread_state = cunwind_test_thread_start(CUNWIND_TEST_SPINNING, 3);
  if (ready == MAP_FAILED || !engine || !thread_state) return -1;
  cunwind_engine_refresh_images(engine);
  pid_t tid = cunwind_test_thread_tid(thread_state), tracer = follow(tid, ready);
  cunwind_thread *thread = cunwind_thread_open(tid, CUNWIND_ALL_THREAD_FILES, NULL);
  int status = -1, ignored;
  if (tracer && thread) {
    status = cunwind_capture_stop(engine, thread, &stack, &info);
    *error = info.error;
    kill(tracer, SIGKILL);
    cunwind_test_await_child(tracer, &ignored);
    *second = cunwind_capture_stop(engine, thread, &stack, &info);
  }
  cunwind_thread_close(thread);
  cunwind_test_thread_stop(thread_state);
  cunwind_engine_destroy(engine);
  munmap((void *)ready, sizeof *ready);
  return status;
}

// Runs `body` in a child under a filter that makes `call` fail with `error` or kill (0). Returns the child's wait
// status.
static int run_under_filter(uint32_t call, int error, bool (*body)(void)) {
  pid_t child = fork();
  if (child == 0) {
    if (cunwind_test_refuse(call, cunwind_test_refusal_by(error)) < 0) _exit(2);
    _exit(body());
  }
  int status = -1;
  if (child > 0) cunwind_test_await_child(child, &status);
  return status;
}

int cunwind_test_run_without_vm_readv(int error, bool (*body)(void)) {
  return run_under_filter(SYS_process_vm_readv, error, body);
}

int cunwind_test_short_slice_under_filter(bool kills) {
  return run_under_filter(SYS_sched_setattr, kills ? 0 : EPERM, cunwind_request_short_slice);
}

#define MEMORY_BYTES (64ul << 20)

static uint64_t page_faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (uint64_t)usage.ru_minflt;
}

static void try_calls(uint32_t action, bool shares_memory, cunwind_test_trials *trials) {
  if (cunwind_test_refuse(SYS_process_vm_readv, action) < 0) _exit(1);
  if (cunwind_test_refuse(SYS_rt_tgsigqueueinfo, action) < 0) _exit(1);
  void *memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  // A copy of a huge page would be one fault.
  if (memory == MAP_FAILED || madvise(memory, MEMORY_BYTES, MADV_NOHUGEPAGE) != 0) _exit(2);
  memset(memory, 1, MEMORY_BYTES);
  cunwind_test_thread *thread = cunwind_test_thread_start(CUNWIND_TEST_SPINNING, 3);
  if (!thread) _exit(3);
  uint64_t before = page_faults();
  trials->is_tried = cunwind_try_rare_calls(shares_memory, &trials->deadly);
  memset(memory, 2, MEMORY_BYTES);
  trials->faults = page_faults() - before;
  uint32_t filtered = 1u << CUNWIND_CALL_READ_MEMORY | 1u << CUNWIND_CALL_QUEUE_SIGNAL;
  trials->other_calls = trials->deadly & ~filtered;
  trials->deadly &= filtered;
  trials->is_known = !cunwind_call_is_deadly(CUNWIND_CALL_PTRACE);
  if (cunwind_test_refuse(SYS_ptrace, refusal(true)) < 0) _exit(4);
  trials->is_known_later = cunwind_call_is_deadly(CUNWIND_CALL_PTRACE);
  cunwind_test_thread_stop(thread);
}

int cunwind_test_try_calls(uint32_t action, bool shares_memory, cunwind_test_trials *trials) {
  void *shared = mmap(NULL, sizeof *trials, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return -1;
  pid_t child = fork();
  if (child == 0) {
    try_calls(action, shares_memory, shared);
    _exit(0);
  }
  int status = -1;
  if (child > 0) cunwind_test_await_child(child, &status);
  memcpy(trials, shared, sizeof *trials);
  munmap(shared, sizeof *trials);
  return status;
}
