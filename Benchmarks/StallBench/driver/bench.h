// What the driver's files share. The driver stalls a loop in known ways, one case after another, and sends the truth
// about each to the runner.

#ifndef STALLBENCH_H
#define STALLBENCH_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/// A function that stalls its caller for about `milliseconds`.
typedef void bench_stall(unsigned milliseconds);

struct bench_case {
  /// The process that runs the case: glib-a, glib-b, thread, cf or swift.
  const char *set;
  const char *name;
  /// The function that a monitor has to name, and where it is.
  const char *function, *file;
  int line;
  bench_stall *stall;
  /// cpu, kernel, contention, lock, io, sleep, paging or child.
  const char *cause;
  /// The length of one turn in milliseconds, how often it is run, and the pause between the turns.
  unsigned milliseconds, turns, pause;
  /// The turns stay under the threshold: no tool may report them.
  bool healthy;
  /// The case runs later, in a turn of its own, and calls bench_begin and bench_end itself.
  bool deferred;
};

// The cases, of all sets. Each list ends with an empty case.
extern const struct bench_case bench_busy[], bench_waiting[], bench_healthy[];
/// Cases.swift: adds its cases, and returns how many. NULL in a driver that is C alone.
__attribute__((weak)) unsigned bench_more_cases(struct bench_case *cases, unsigned most);

// driver.c
extern unsigned bench_early_returns;
/// Seconds of the turn in which the case's thread did not run though it could, and in which the process was suspended.
extern double bench_gaps, bench_excused;
/// Inline and without debug information, so that no helper is on the stack of a case that computes.
#ifdef __clang__
__attribute__((always_inline, nodebug))
#else
__attribute__((always_inline, artificial))
#endif
static inline double
bench_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}
int bench_thread(void);
void bench_note_early(void);
void bench_start(const char *set);
/// Sends that a case has begun, or has ended. Both also work in a case that ends the process.
void bench_begin(const struct bench_case *bench_case);
void bench_end(void);
/// Names the thread that holds what the case waits for.
void bench_owner(int thread, const char *name, const char *function);
/// Called by each loop where it leaves its wait and where it enters it again.
void bench_turn_begin(void);
void bench_turn_end(void);
void bench_finish(void);

/// How long each loop waits before its first case, in milliseconds: a tool needs longer to begin on a busy machine.
unsigned bench_first_pause(void);
/// What a loop has to do in its next turn, and the pause until the one after it; negative at the end.
int bench_step(void);

// loop.c
/// Calls bench_start on its thread, and runs the loop until bench_step returns a negative number.
void bench_run_loop(const char *set);
/// Runs the loop inside a turn for some time, as a modal window does.
void bench_run_nested(unsigned milliseconds);

// How a case is written. SPIN uses the processor in the case's own function, and adds up the gaps between two clock
// reads that are longer than 50 us: the thread did not run there, or was stopped.

#define CASE(name)                                            \
  static const int name##_line = __LINE__;                    \
  __attribute__((noinline)) void name(unsigned milliseconds); \
  void name(unsigned milliseconds)

#define ROW(set, name, function, cause, milliseconds) ROWS(set, name, function, cause, milliseconds, 1, 0)
/// A case of several turns, with pauses between them: each is a stall.
#define ROWS(set, name, function, cause, milliseconds, turns, pause) \
  { set, name, #function, __FILE_NAME__, function##_line, function, cause, milliseconds, turns, pause, false, false }

#define SPIN(milliseconds, work)                                                                                  \
  for (double spin_began = bench_now(), spin_last = spin_began; spin_last < spin_began + (milliseconds) / 1e3;) { \
    work;                                                                                                         \
    double spin_now = bench_now();                                                                                \
    if (spin_now - spin_last > 5e-5) bench_gaps += spin_now - spin_last;                                          \
    spin_last = spin_now;                                                                                         \
  }

/// Counts a call that a signal or a stop has cut short.
#define NOTE(result) \
  if ((result) < 0 && errno == EINTR) bench_early_returns++

/// Starts a thread that holds something for the case. Returns when `hold` has it.
struct bench_holder {
  void (*hold)(void *lock);
  void (*release)(void *lock);
  void *lock;
  unsigned milliseconds;
  const char *name;
  bool spins;
  /// Internal.
  int ready[2];
};

/// The thread goes on holding for `milliseconds`, and then releases. The truth gets its name, unless the lock has no
/// owner.
void bench_hold(struct bench_holder holder, bool has_owner);
/// Writes a byte to the descriptor later, from another thread.
void bench_write_later(int descriptor, unsigned milliseconds);

#endif
