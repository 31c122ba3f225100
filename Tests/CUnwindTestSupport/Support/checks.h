// What the checks of the engine have in common: expectations, settings, and a thread that is captured.

#ifndef CUNWIND_CHECKS_H
#define CUNWIND_CHECKS_H

#include <CUnwind.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "CUnwindTestSupport.h"

/// The check that this thread runs fails unless `condition` holds. Returns whether it does.
#define EXPECT(condition) cunwind_test_expect((condition), #condition, __func__)
bool cunwind_test_expect(bool holds, const char *condition, const char *function);

/// Adds to what the check says.
__attribute__((format(printf, 1, 2))) void cunwind_test_say(const char *format, ...);

/// For printf(3)'s %llu.
#define COUNT(value) ((unsigned long long)(value))

/// Runs `body` in a child process. What it expects and says counts as if it had run here; it has to end by itself.
void cunwind_test_expect_in_child(void (*body)(int), int argument);

typedef struct cunwind_test_settings {
  bool is_emulated;      ///< STALLWATCH_EMULATED: an unwind takes 50 times as long, and a signal may come late.
  bool wants_libunwind;  ///< STALLWATCH_UNWINDER is not "builtin".
  uint64_t rounds;       ///< STALLWATCH_TEST_ROUNDS, else 1: so many times the random inputs of `make test`.
  uint64_t seed;         ///< STALLWATCH_FUZZ_SEED, else the day in continuous integration (CI), else a fixed number.
  uint32_t fault_milliseconds;
  uint64_t stress_captures;      ///< So many end the stress before its time, unless STALLWATCH_STRESS_SECONDS is set.
  uint32_t stress_milliseconds;  ///< STALLWATCH_STRESS_SECONDS, 4 without it.
} cunwind_test_settings;

cunwind_test_settings cunwind_test_settings_now(void);

/// A thread in a posture, and an engine that captures it.
typedef struct cunwind_test_subject {
  cunwind_engine *engine;
  cunwind_test_thread *state;
  cunwind_thread *thread;
  pid_t tid;
  cunwind_capture_info info;  ///< Of the last capture.
} cunwind_test_subject;

typedef cunwind_status (*cunwind_test_method)(cunwind_engine *, cunwind_thread *, cunwind_stack *,
                                              cunwind_capture_info *);

/// The last capture's stack, of any subject.
extern cunwind_stack cunwind_test_stack;

/// Starts the thread and opens it; the engine captures by `signal_number` if it has to. The check fails if it cannot.
bool cunwind_test_subject_start(cunwind_test_subject *subject, cunwind_test_posture posture, uint32_t depth,
                                int signal_number);
bool cunwind_test_subject_start_with(cunwind_test_subject *subject, cunwind_test_posture posture, uint32_t depth,
                                     const cunwind_options *options);
/// Captures, again while the thread is between two of its calls.
cunwind_status cunwind_test_capture(cunwind_test_subject *subject, cunwind_test_method method);
/// Returns whether a capture gave a stack that reaches the thread's start.
bool cunwind_test_is_whole(cunwind_status status);
/// Ends the thread and frees all. Returns the number of the thread's rounds after its captures: 0 means that it was left
/// stopped.
uint64_t cunwind_test_subject_stop(cunwind_test_subject *subject);

/// Reaps the children of this process that have ended. Returns their number.
uint64_t cunwind_test_reap_zombies(void);

// The checks of each file, by what they are about.

void cunwind_check_late_stop(int unused);
void cunwind_check_killed_helper(int unused);
void cunwind_check_stopped_helper(int unused);
void cunwind_check_signal_storm(int unused);
void cunwind_check_job_control(int unused);
void cunwind_check_unnamed_helper(int unused);
void cunwind_check_late_helper(int refreshes);
void cunwind_check_overdue_helper(int unused);
void cunwind_check_shared_signal(int unused);
void cunwind_check_kept_restart(int unused);
void cunwind_check_plain_signal(int unused);
void cunwind_check_states(int unused);
void cunwind_check_unknown_code(int unused);
void cunwind_check_deep_stack(int by_signal);
void cunwind_check_same_place(int unused);
void cunwind_check_blocked_signal(int unused);
void cunwind_check_uninterruptible_sleep(int unused);
void cunwind_check_refused_ptrace(int error);
void cunwind_check_traced_thread(int unused);
void cunwind_check_realtime_thread(int unused);
void cunwind_check_outranked_helper(int error);
void cunwind_check_weak_helper(int nice);
void cunwind_check_other_group(int unused);
void cunwind_check_deadly_calls(int index);
void cunwind_check_newer_filter(int unused);
void cunwind_check_reused_id(int unused);
void cunwind_check_memory_access(int access);
void cunwind_check_memory_without_call(int error);
void cunwind_check_memory_without_engine(int error);
void cunwind_check_words_under_filter(int words);
void cunwind_check_preferred_memory_access(int unused);
void cunwind_check_read_proof(int counts_slices);
void cunwind_check_mappings(int unused);
void cunwind_check_idle_memory(int unused);
void cunwind_check_short_slice(int unused);
void cunwind_check_refused_short_slice(int error);
void cunwind_check_listed_images(int unused);
void cunwind_check_loaded_image(int unused);
void cunwind_check_namespaces(int unused);
void cunwind_check_relative_paths(int unused);
void cunwind_check_held_linker_lock(int unused);
void cunwind_check_cut_image(int unused);
void cunwind_check_damaged_stacks(int unused);
void cunwind_check_damaged_tables(int unused);
void cunwind_check_steppers(int unused);
void cunwind_check_code_steps(int unused);
void cunwind_check_debug_frames(int unused);
void cunwind_check_stepper_traps(int unused);
void cunwind_check_unwinder_name(int unused);
void cunwind_check_unwinder_symbols(int unused);
void cunwind_check_unwinder_in_child(int unused);
void cunwind_check_unwinder_files(int unused);
void cunwind_check_locks(int unused);

#endif
