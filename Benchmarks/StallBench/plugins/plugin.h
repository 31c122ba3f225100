// What the twins share: the report file. A line names the moment of the report and the begin of the turn, on CLOCK_MONOTONIC,
// then comes the stack, innermost frame first, and at the end of the turn its length.

#include <execinfo.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FRAMES = 64 };

static int output = -1;
static double threshold, turn_began;

static inline double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static inline void open_output(unsigned milliseconds, const char *folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/stalls.txt", folder);
  output = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  threshold = milliseconds / 1e3;
  // The first call loads the unwinder, which no handler may do.
  void *frames[4];
  backtrace(frames, 4);
}

static inline void write_line(const char *word, double first, double second) {
  char line[128];
  int length = snprintf(line, sizeof line, "%s %.6f %.6f\n", word, first, second);
  if (write(output, line, (size_t)length) < 0) output = -1;
}
