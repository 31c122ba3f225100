// Damaged stacks and tables, disturbed helpers, refused calls, images, and threads that hold locks: the
// expectations of CUnwindTests on x86-64, for shorter times.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <CUnwindTestSupport.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checks.h"

/// Fewer than on x86-64: emulated, an unwind takes 50 times as long.
enum { DAMAGED_STACKS = 20000, DAMAGED_TABLES = 20000, SEED = 20261121 };
enum { FAULT_MILLISECONDS = 2000, PROOF_MILLISECONDS = 2000, PROOF_ROUNDS = 8, STRESS_MILLISECONDS = 8000 };

void check_damage(void) {
  cunwind_test_fuzz_result stacks = cunwind_test_fuzz(SEED, DAMAGED_STACKS);
  check(stacks.images == DAMAGED_STACKS && stacks.broken == 0 && stacks.frames > stacks.images &&
            stacks.by_end[CUNWIND_END_COMPLETE] < stacks.images,
        "damaged stacks are unwound", "%llu stacks, %llu frames, %llu broken rules, slowest %llu us",
        COUNT(stacks.images), COUNT(stacks.frames), COUNT(stacks.broken), COUNT(stacks.slowest_nanoseconds / 1000));
  cunwind_test_table_result tables = cunwind_test_fuzz_tables(SEED, DAMAGED_TABLES);
  check(tables.tables == DAMAGED_TABLES && tables.found > 0 && tables.steps > 0 && tables.refused > 0,
        "damaged unwind tables end in no frame or a sound one", "%llu tables, %llu found, %llu steps, %llu refused",
        COUNT(tables.tables), COUNT(tables.found), COUNT(tables.steps), COUNT(tables.refused));
}

static void check_fault(bool is_right, const char *name, const cunwind_test_fault_result *result) {
  checked.captures += result->captures;
  check(is_right && result->disturbances > 0 && result->rounds > 0 && result->zombies == 0, name,
        "%llu disturbances, %llu captures, %llu late, %llu failed (status %d, errno %d), %llu lost, %llu zombies",
        COUNT(result->disturbances), COUNT(result->captures), COUNT(result->timed_out), COUNT(result->failed),
        result->last_status, result->last_error, COUNT(result->lost), COUNT(result->zombies));
}

void check_late_stop(void) {
  cunwind_test_stop_timeout_result late = cunwind_test_stop_timeout();
  bool goes_on = late.wait_error == 0 || (late.wait_error == EINTR && !calls_can_restart());
  check(late.capture == CUNWIND_TIMED_OUT && goes_on && late.zombies == 0, "a late stop does not interrupt the call",
        "status %d, errno %d", late.capture, late.wait_error);
}

void check_faults(void) {
  cunwind_test_fault_result result = cunwind_test_kill_helpers(FAULT_MILLISECONDS);
  check_fault(result.failed > 0 && result.captures > 0, "a killed helper leaves nothing stopped", &result);
  result = cunwind_test_stop_helpers(FAULT_MILLISECONDS);
  check_fault(result.timed_out > 0 && result.failed == 0 && result.slowest_capture_nanoseconds < 1000000000,
              "a hung helper is given up in bounded time", &result);
  result = cunwind_test_signal_storm(FAULT_MILLISECONDS);
  check_fault(result.lost == 0 && result.failed == 0 && result.captures > 0, "every signal arrives", &result);
  result = cunwind_test_job_control(FAULT_MILLISECONDS);
  check_fault(result.captures > 0, "captures survive job control", &result);
  int status = -1;
  uint64_t took = cunwind_test_unnamed_helper(&status);
  check(status == CUNWIND_TIMED_OUT && took >= CUNWIND_STOP_TIMEOUT_NANOSECONDS &&
            took < 10 * CUNWIND_STOP_TIMEOUT_NANOSECONDS,
        "a helper ends if its parent is gone", "status %d after %llu ms", status, COUNT(took / 1000000));
  check(cunwind_test_late_helper(false) == 0 && cunwind_test_late_helper(true) == 0,
        "a helper that ends late is reaped", "at once and later");
  check(cunwind_test_overdue_helper() == 0, "a helper left to its thread is killed in time", "within its limit");
}

static void check_filter(bool kills) {
  cunwind_test_refusal_result result = {0};
  bool has_run = cunwind_test_refusal(kills, &result);
  check(has_run && result.probe_status == CUNWIND_REFUSED && result.probe_error == EPERM &&
            result.stop_status == CUNWIND_REFUSED && result.stop_error == EPERM && result.signal_status == CUNWIND_OK &&
            result.signal_is_complete && result.read_status == CUNWIND_OK && result.read_is_complete,
        kills ? "a filter that kills for ptrace leaves read and signal" : "a filter that refuses ptrace does, too",
        "probe %d, stop %d, signal %d, read %d", result.probe_status, result.stop_status, result.signal_status,
        result.read_status);
}

static void check_proof(bool counts_slices) {
  cunwind_test_proof_result result = {0};
  // Emulated, a wait of a microsecond is often over before the read is.
  for (int round = 0; round < PROOF_ROUNDS && result.valid == 0; round++) {
    cunwind_test_proof_result more = cunwind_test_read_proof(counts_slices, PROOF_MILLISECONDS);
    result.counted_slices |= more.counted_slices;
    result.valid += more.valid;
    result.refused += more.refused;
    result.torn_valid += more.torn_valid;
    result.torn_refused += more.torn_refused;
  }
  check(result.counted_slices == counts_slices && result.valid > 0 && result.torn_valid == 0,
        counts_slices ? "a read proved by time slices is never torn" : "a read proved by switches is never torn",
        "%llu valid, %llu refused, of which %llu torn", COUNT(result.valid), COUNT(result.refused),
        COUNT(result.torn_refused));
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
  return engine ? (int)cunwind_engine_probe_stop(engine, &error) : 106;
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

void check_refusals(void) {
  check_hidden_yama();
  check_filter(false);
  check_filter(true);
  check(cunwind_test_short_slice_under_filter(false) == 0 && cunwind_test_short_slice_under_filter(true) == 0,
        "a filter against sched_setattr is survived", "refused and killed");
  static const char *const accesses[] = {NULL, "process_vm_readv", "/proc/self/mem", "a pipe"};
  for (int access = CUNWIND_MEMORY_CALL; access <= CUNWIND_MEMORY_PIPE; access++) {
    int failed = cunwind_test_memory_access((cunwind_memory_access)access);
    check(failed == 0, "memory is read up to a missing page", "by %s: step %d", accesses[access], failed);
  }
  static const int errors[] = {EPERM, ENOSYS, 0};
  for (int index = 0; index < 3; index++) {
    int failed = cunwind_test_memory_without_call(errors[index]);
    check(failed == 0, "a refused process_vm_readv leaves /proc/self/mem", "errno %d: step %d", errors[index], failed);
  }
  int reused = cunwind_test_may_choose_ids() ? cunwind_test_stop_reused_id() : -1;
  check(reused == CUNWIND_NO_SUCH_THREAD, "a process with a reused thread id is not stopped", "status %d", reused);
  check_proof(true);
  check_proof(false);
}

void check_images(void) {
  size_t linked = 0, missing = 1, counts[3] = {0};
  cunwind_engine *engine = cunwind_test_engine(SIGPROF);
  if (engine) counts[0] = cunwind_engine_refresh_images(engine), missing = cunwind_test_missing_images(engine, &linked);
  check(missing == 0 && linked == counts[0] && linked >= 3, "every linked image is listed", "%zu images", linked);
  void *library = dlopen("libBrokenLocale.so.1", RTLD_NOW);
  if (engine) counts[1] = cunwind_engine_refresh_images(engine);
  if (library) dlclose(library);
  if (engine) counts[2] = cunwind_engine_refresh_images(engine);
  check(counts[1] == counts[0] + 1 && counts[2] == counts[0], "a library is listed from dlopen to dlclose",
        "%zu, %zu, %zu images", counts[0], counts[1], counts[2]);
  check(engine && cunwind_test_refreshes_beside_held_linker_lock(engine), "a held linker lock delays no refresh",
        "within 2 s");
  cunwind_engine_destroy(engine);
  int cut = cunwind_test_cut_image();
  check(cut == 0, "an image with a truncated file is left out", "step %d", cut);
}

void check_stress(void) {
  cunwind_test_stress_result result = cunwind_test_stress(STRESS_MILLISECONDS);
  checked.captures += result.captures + result.reads - result.incomplete;
  check(result.captures > 0 && result.reads > 0 && result.incomplete * 100 <= result.captures &&
            result.timed_out <= result.captures && result.failed == 0 && result.stuck == 0 &&
            result.lost_children == 0 && result.lost_exceptions == 0 && result.zombies == 0 && result.leaked_files <= 0,
        "threads that hold locks lose nothing",
        "%llu captures, %llu reads, %llu incomplete, %llu late, %llu failed (status %d, errno %d), %llu stuck",
        COUNT(result.captures), COUNT(result.reads), COUNT(result.incomplete), COUNT(result.timed_out),
        COUNT(result.failed), result.last_status, result.last_error, COUNT(result.stuck));
}

void check_steppers(void) {
  cunwind_test_stepper_result result = cunwind_test_compare_steppers(1, 1);
  cunwind_engine *engine = cunwind_test_engine(SIGPROF);
  cunwind_unwinder_status unwinder =
      engine ? cunwind_engine_unwinder(engine) : (cunwind_unwinder_status){.name = "none"};
  check(result.has_library, "libunwind is loaded", "%s (%s)", unwinder.name,
        unwinder.reason ? unwinder.reason : "as wanted");
  cunwind_engine_destroy(engine);
  check(result.disagreements == 0 && result.compared * 2 > result.functions, "both steppers",
        "%llu functions, %llu compared steps, %llu made by ours alone, %llu differ, the first at %llx",
        COUNT(result.functions), COUNT(result.compared), COUNT(result.stood_in), COUNT(result.disagreements),
        COUNT(result.first));
}
