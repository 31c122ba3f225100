// CPreload is loaded into programs by LD_PRELOAD, and nothing calls it: its constructors do what the variables below say.
//
// - In the test processes of `stallwatch test` it starts a thread that waits for requests; only a request loads the monitor.
// - In a program of `stallwatch run` it starts a thread that loads the monitor once the program has a loop to watch.

#pragma once

/// The variable with the path of the library that has the monitor.
#define CPRELOAD_LIBRARY "STALLWATCH_HANG_LIBRARY"
/// The variable with the directory in which a process offers its requests: `ask.PID`, a FIFO. A request is a line with the
/// time without progress in milliseconds, a space, and the directory that receives the report. The answer is the file
/// `answer.PID`: a line with 0, a space and the report's path, or with 1, a space and the reason for having none.
#define CPRELOAD_REQUESTS "STALLWATCH_HANG_REQUESTS"

/// The variable with the number of tasks of each priority that run at the same time, from 1 to CPRELOAD_MAXIMUM_POOL, in
/// test processes and in the program of `stallwatch run`; not set to leave that to the Swift runtime.
#define CPRELOAD_POOL "STALLWATCH_POOL"
#define CPRELOAD_MAXIMUM_POOL 64

/// The variable with the path of the library that has the monitor, for `stallwatch run`.
#define CPRELOAD_RUN_LIBRARY "STALLWATCH_RUN_LIBRARY"
/// The variable with the absolute path of the directory for reports.
#define CPRELOAD_RUN_OUTPUT "STALLWATCH_RUN_OUTPUT"
/// The variable with four decimal numbers and spaces between them: the threshold in nanoseconds, the sum of the
/// CPRELOAD_LOOP values, and 1 or 0 for "child processes, too" and for "print nothing".
#define CPRELOAD_RUN_SETTINGS "STALLWATCH_RUN_SETTINGS"

/// The loops to watch, as a sum.
enum cpreload_loop {
  CPRELOAD_LOOP_RUN_LOOP = 1,    ///< The main run loop of Foundation.
  CPRELOAD_LOOP_MAIN_QUEUE = 2,  ///< The main dispatch queue and the main actor.
  CPRELOAD_LOOP_GLIB = 4         ///< The default main context of GLib.
};
