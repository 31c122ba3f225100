// What the driver's files share. The driver stalls a loop in known ways, one case after another, and sends the truth about
// each to the runner.

#ifndef STALLBENCH_H
#define STALLBENCH_H

#include <stdbool.h>
#include <stdint.h>

/// A function that stalls its caller for about `milliseconds`.
typedef void bench_stall(unsigned milliseconds);

struct bench_case {
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

// cases.c, healthy.c and Cases.swift: the cases of a set, such as "glib-a". Returns their number.
unsigned bench_cases_of(const char *set, const struct bench_case **cases);

// truth.c
extern unsigned bench_early_returns;
extern double bench_gaps;
double bench_now(void);
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

// plan.c: what a loop has to do in its next turn, and the pause until the one after it; negative at the end.
int bench_step(void);

/// Calls bench_start on its thread, and runs the loop until bench_step returns a negative number. loop-*.c
void bench_run_loop(const char *set);
/// Runs the loop inside a turn for some time, as a modal window does.
void bench_run_nested(unsigned milliseconds);

#endif
