// The table of all checks of the engine, and how one is run.

#define _GNU_SOURCE
#include "Support/checks.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "Support/bounded.h"

#define ROW(topic, name, check, argument) \
  { {topic, name, argument}, cunwind_check_##check }

// The late stop comes first: later checks install handlers, and on aarch64 a program with handlers may get EINTR.
static const struct {
  cunwind_test_check check;
  void (*run)(int argument);
} rows[] = {
    ROW(CUNWIND_TEST_HELPERS, "a late stop does not interrupt the call", late_stop, 0),
    ROW(CUNWIND_TEST_HELPERS, "a killed helper leaves nothing stopped", killed_helper, 0),
    ROW(CUNWIND_TEST_HELPERS, "a hung helper is given up in bounded time", stopped_helper, 0),
    ROW(CUNWIND_TEST_HELPERS, "captures survive job control", job_control, 0),
    ROW(CUNWIND_TEST_HELPERS, "a helper ends if its parent is gone", unnamed_helper, 0),
    ROW(CUNWIND_TEST_HELPERS, "a helper that ends late is reaped", late_helper, false),
    ROW(CUNWIND_TEST_HELPERS, "a helper that ends late is reaped at a refresh", late_helper, true),
    ROW(CUNWIND_TEST_HELPERS, "a helper left to its thread is killed in time", overdue_helper, 0),
    ROW(CUNWIND_TEST_STATES, "the stack is whole, and the thread runs on", states, 0),
    ROW(CUNWIND_TEST_STATES, "a stack beyond the limit keeps both ends, by stop", deep_stack, false),
    ROW(CUNWIND_TEST_STATES, "a stack beyond the limit keeps both ends, by signal", deep_stack, true),
    ROW(CUNWIND_TEST_STATES, "code in no image is crossed, and what is outward is a guess", unknown_code, 0),
    ROW(CUNWIND_TEST_STATES, "a stop and a read show the same address", same_place, 0),
    ROW(CUNWIND_TEST_STATES, "a thread that blocks the signal is sent none", blocked_signal, 0),
    ROW(CUNWIND_TEST_VFORK, "a thread in uninterruptible sleep is read", uninterruptible_sleep, 0),
    ROW(CUNWIND_TEST_SIGNALS, "a signal that the app uses goes to its handler", shared_signal, 0),
    ROW(CUNWIND_TEST_SIGNALS, "every signal arrives", signal_storm, 0),
    ROW(CUNWIND_TEST_SIGNALS, "a signal that interrupts the app's calls still does", kept_restart, 0),
    ROW(CUNWIND_TEST_SIGNALS, "without ptrace the signal takes over", refused_ptrace, EPERM),
    ROW(CUNWIND_TEST_SIGNALS, "a filter that kills for ptrace leaves read and signal", refused_ptrace, 0),
    ROW(CUNWIND_TEST_REFUSALS, "a thread with a tracer is busy until the tracer is gone", traced_thread, 0),
    ROW(CUNWIND_TEST_REFUSALS, "a process with a reused thread id is not stopped", reused_id, 0),
    ROW(CUNWIND_TEST_REFUSALS, "a filter that kills the process is found out", deadly_calls, 0),
    ROW(CUNWIND_TEST_REFUSALS, "a filter that kills the thread is found out", deadly_calls, 1),
    ROW(CUNWIND_TEST_REFUSALS, "a filter that traps is found out", deadly_calls, 2),
    ROW(CUNWIND_TEST_REFUSALS, "a filter that refuses is not deadly", deadly_calls, 3),
    ROW(CUNWIND_TEST_REFUSALS, "a filter that the program adds later is not tried", newer_filter, 0),
    ROW(CUNWIND_TEST_REFUSALS, "a real-time thread is stopped by a helper of a higher priority", realtime_thread, 0),
    ROW(CUNWIND_TEST_REFUSALS, "a real-time thread that no helper may outrank is not stopped", outranked_helper, EPERM),
    ROW(CUNWIND_TEST_REFUSALS, "a filter that kills for sched_setattr leaves real-time threads", outranked_helper, 0),
    ROW(CUNWIND_TEST_REFUSALS, "a captor with nice 19 stops no thread without", weak_helper, 19),
    ROW(CUNWIND_TEST_REFUSALS, "a thread of another control group is not stopped", other_group, 0),
    ROW(CUNWIND_TEST_REFUSALS, "a short slice keeps policy and nice value", short_slice, 0),
    ROW(CUNWIND_TEST_REFUSALS, "a filter against sched_setattr is survived", refused_short_slice, EPERM),
    ROW(CUNWIND_TEST_REFUSALS, "a filter that kills for sched_setattr is survived", refused_short_slice, 0),
    ROW(CUNWIND_TEST_MEMORY, "memory is read up to a missing page", memory_access, CUNWIND_MEMORY_CALL),
    ROW(CUNWIND_TEST_MEMORY, "memory is read up to a missing page", memory_access, CUNWIND_MEMORY_FILE),
    ROW(CUNWIND_TEST_MEMORY, "memory is read up to a missing page", memory_access, CUNWIND_MEMORY_PIPE),
    // The answers of Docker up to 20.10 and containerd up to 1.6, of kernels without the call, and of strict filters.
    ROW(CUNWIND_TEST_MEMORY, "a refused process_vm_readv leaves /proc/self/mem", memory_without_call, EPERM),
    ROW(CUNWIND_TEST_MEMORY, "a refused process_vm_readv leaves /proc/self/mem", memory_without_call, ENOSYS),
    ROW(CUNWIND_TEST_MEMORY, "a refused process_vm_readv leaves /proc/self/mem", memory_without_call, 0),
    ROW(CUNWIND_TEST_MEMORY, "memory is read without an engine", memory_without_engine, EPERM),
    ROW(CUNWIND_TEST_MEMORY, "memory is read without an engine", memory_without_engine, ENOSYS),
    ROW(CUNWIND_TEST_MEMORY, "memory is read without an engine", memory_without_engine, 0),
    ROW(CUNWIND_TEST_MEMORY, "words are read without a file for each under a filter", words_under_filter, 2000),
    ROW(CUNWIND_TEST_MEMORY, "process_vm_readv is preferred where it works", preferred_memory_access, 0),
    ROW(CUNWIND_TEST_MEMORY, "a read proved by time slices is never torn", read_proof, true),
    ROW(CUNWIND_TEST_MEMORY, "a read proved by switches is never torn", read_proof, false),
    ROW(CUNWIND_TEST_MEMORY, "the mappings are read once for many threads", mappings, 0),
    ROW(CUNWIND_TEST_MEMORY, "what only captures need takes a page of each before", idle_memory, 0),
    ROW(CUNWIND_TEST_IMAGES, "every linked image is listed", listed_images, 0),
    ROW(CUNWIND_TEST_IMAGES, "a library is listed from dlopen to dlclose", loaded_image, 0),
    ROW(CUNWIND_TEST_IMAGES, "a library in a namespace of its own is listed", namespaces, 0),
    ROW(CUNWIND_TEST_IMAGES, "relative paths of libraries are read at once", relative_paths, 0),
    ROW(CUNWIND_TEST_IMAGES, "a thread that holds the linker's lock delays nothing", held_linker_lock, 0),
    ROW(CUNWIND_TEST_IMAGES, "an image with a truncated file is left out", cut_image, 0),
    ROW(CUNWIND_TEST_DAMAGE, "a million damaged stacks are unwound", damaged_stacks, 0),
    ROW(CUNWIND_TEST_DAMAGE, "damaged unwind tables end in no frame or a sound one", damaged_tables, 0),
    ROW(CUNWIND_TEST_UNWINDERS, "both steppers agree about the functions of all images", steppers, 0),
    ROW(CUNWIND_TEST_UNWINDERS, "a step without what it needs is no guess", stepper_traps, 0),
    ROW(CUNWIND_TEST_UNWINDERS, "a function's own code leads to its caller", code_steps, 0),
    ROW(CUNWIND_TEST_UNWINDERS, "a function is found in .debug_frame, or nowhere", debug_frames, 0),
    ROW(CUNWIND_TEST_UNWINDERS, "an engine names its unwinder", unwinder_name, 0),
    ROW(CUNWIND_TEST_UNWINDERS, "libunwind takes no symbol of the program", unwinder_symbols, 0),
    ROW(CUNWIND_TEST_UNWINDERS, "a child of fork leaves libunwind alone", unwinder_in_child, 0),
    ROW(CUNWIND_TEST_UNWINDERS, "a file that is no libunwind is refused", unwinder_files, 0),
    ROW(CUNWIND_TEST_LOCKS, "nothing is lost, stuck or left behind", locks, 0),
    ROW(CUNWIND_TEST_CALLS, "a plain signal interrupts calls", plain_signal, 0),
};

size_t cunwind_test_check_count(void) { return sizeof rows / sizeof rows[0]; }

cunwind_test_check cunwind_test_check_at(size_t index) { return rows[index].check; }

// ---- One check ------------------------------------------------------------------------------------------------------

typedef struct outcome {
  bool has_failed;
  size_t length;
  char text[4096];
} outcome;

static __thread outcome own;

const char *cunwind_test_run_check(size_t index, bool *has_passed) {
  own = (outcome){0};
  rows[index].run(rows[index].check.argument);
  *has_passed = !own.has_failed;
  return own.text;
}

void cunwind_test_say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t left = sizeof own.text - own.length;
  int length = vsnprintf(own.text + own.length, left, format, arguments);
  if (length > 0) own.length += (size_t)length < left ? (size_t)length : left - 1;
  va_end(arguments);
}

bool cunwind_test_expect(bool holds, const char *condition, const char *function) {
  if (!holds) cunwind_test_say("; WRONG in %s: %s", function, condition);
  own.has_failed |= !holds;
  return holds;
}

void cunwind_test_expect_in_child(void (*body)(int), int argument) {
  outcome *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (!EXPECT(shared != MAP_FAILED)) return;
  pid_t child = fork();
  if (child == 0) {
    own = (outcome){0};
    body(argument);
    *shared = own;
    _exit(0);
  }
  int status = -1;
  if (child > 0) cunwind_test_await_child(child, &status);
  cunwind_test_say("%s", shared->text);
  own.has_failed |= shared->has_failed;
  if (!EXPECT(child > 0 && status == 0)) cunwind_test_say(": the child's status is %#x", (unsigned)status);
  munmap(shared, sizeof *shared);
}

cunwind_test_settings cunwind_test_settings_now(void) {
  const char *seed = getenv("STALLWATCH_FUZZ_SEED"), *rounds = getenv("STALLWATCH_TEST_ROUNDS");
  const char *stress = getenv("STALLWATCH_STRESS_SECONDS"), *unwinder = getenv("STALLWATCH_UNWINDER");
  bool is_emulated = getenv("STALLWATCH_EMULATED") != NULL;
  return (cunwind_test_settings){
      .is_emulated = is_emulated,
      .wants_libunwind = !unwinder || strcmp(unwinder, "builtin") != 0,
      .rounds = rounds ? strtoull(rounds, NULL, 10) : 1,
      .seed = seed           ? strtoull(seed, NULL, 10)
              : getenv("CI") ? (uint64_t)time(NULL) / 86400
                             : 20261121,
      .fault_milliseconds = is_emulated ? 2000 : 600,
      .stress_captures = stress ? UINT64_MAX : 1500,
      .stress_milliseconds = stress ? (uint32_t)strtoul(stress, NULL, 10) * 1000 : 4000,
  };
}

// ---- A thread that is captured --------------------------------------------------------------------------------------

cunwind_stack cunwind_test_stack;

// The engine comes second: its buffers could be mapped right above the thread's stack, and would count as a part of it.
bool cunwind_test_subject_start_with(cunwind_test_subject *subject, cunwind_test_posture posture, uint32_t depth,
                                     const cunwind_options *options) {
  *subject = (cunwind_test_subject){.state = cunwind_test_thread_start(posture, depth)};
  if (!EXPECT(subject->state)) return false;
  subject->tid = cunwind_test_thread_tid(subject->state);
  subject->engine = cunwind_engine_create(options);
  subject->thread = cunwind_thread_open(subject->tid, CUNWIND_ALL_THREAD_FILES, NULL);
  if (!EXPECT(subject->engine && subject->thread)) {
    cunwind_test_subject_stop(subject);
    return false;
  }
  cunwind_engine_refresh_images(subject->engine);
  return true;
}

bool cunwind_test_subject_start(cunwind_test_subject *subject, cunwind_test_posture posture, uint32_t depth,
                                int signal_number) {
  cunwind_options options = {.signal_number = signal_number};
  return cunwind_test_subject_start_with(subject, posture, depth, &options);
}

cunwind_status cunwind_test_capture(cunwind_test_subject *subject, cunwind_test_method method) {
  cunwind_status status = CUNWIND_FAILED;
  for (int tries = 0; tries < 10000; tries++) {
    status = method(subject->engine, subject->thread, &cunwind_test_stack, &subject->info);
    if (status != CUNWIND_NOT_BLOCKED && status != CUNWIND_MOVED) break;
    usleep(1000);
  }
  return status;
}

bool cunwind_test_is_whole(cunwind_status status) {
  return status == CUNWIND_OK && cunwind_test_stack.frame_count > 0 && cunwind_test_stack.end == CUNWIND_END_COMPLETE;
}

uint64_t cunwind_test_subject_stop(cunwind_test_subject *subject) {
  cunwind_thread_close(subject->thread);
  uint64_t rounds = subject->state ? cunwind_test_thread_stop(subject->state) : 0;
  cunwind_engine_destroy(subject->engine);
  return rounds;
}

uint64_t cunwind_test_reap_zombies(void) {
  uint64_t count = 0;
  while (waitpid(-1, NULL, WNOHANG | __WALL) > 0) count++;
  return count;
}
