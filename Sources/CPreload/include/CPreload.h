// CPreload is loaded into the test processes of `stallwatch test` by LD_PRELOAD. Nothing calls it: its constructor
// starts a thread that waits for requests, and only a request loads the monitor.

#ifndef CPRELOAD_H
#define CPRELOAD_H

/// The variable with the path of the library that has the monitor.
#define CPRELOAD_LIBRARY "STALLWATCH_HANG_LIBRARY"
/// The variable with the directory in which a process offers its requests: `ask.PID`, a FIFO. A request is a line with the
/// time without progress in milliseconds, a space, and the directory that receives the report. The answer is the file
/// `answer.PID`: a line with 0, a space and the report's path, or with 1, a space and the reason for having none.
#define CPRELOAD_REQUESTS "STALLWATCH_HANG_REQUESTS"

#endif  // CPRELOAD_H
