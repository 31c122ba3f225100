// The truth goes through a socket to the runner, so that a tool cannot read it. Beside it the driver publishes what any
// program may: a heartbeat in a shared file, and calls of a plugin, at the begin and the end of each turn.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

/// The heartbeat: when the current turn began (CLOCK_MONOTONIC in nanoseconds, 0 between turns), and who runs it.
struct heartbeat {
  _Atomic(uint64_t) began, turns;
  _Atomic(int32_t) process, thread;
};

unsigned bench_early_returns;
double bench_gaps;

static struct heartbeat private_heartbeat, *heartbeat = &private_heartbeat;
static int truth = -1;
static void (*plugin_begin)(void), (*plugin_end)(void), (*plugin_stop)(void);
/// Nested loops have turns of their own; the outer one goes on after them.
static bool is_open;

double bench_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int bench_thread(void) { return gettid(); }

void bench_note_early(void) { bench_early_returns++; }

static void send_line(const char *line) {
  if (truth >= 0 && send(truth, line, strlen(line), MSG_NOSIGNAL) < 0) truth = -1;
}

static void connect_to_runner(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  truth = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (truth < 0 || connect(truth, (struct sockaddr *)&address, sizeof address)) {
    fprintf(stderr, "driver: the runner does not listen at %s\n", path);
    exit(1);
  }
}

static void share_heartbeat(const char *path) {
  int file = open(path, O_RDWR | O_CLOEXEC);
  void *memory = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *heartbeat, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory != MAP_FAILED) heartbeat = memory;
  if (file >= 0) close(file);
}

static void load_plugin(const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (!handle) {
    fprintf(stderr, "driver: %s\n", dlerror());
    exit(1);
  }
  void (*start)(unsigned, const char *) = (void (*)(unsigned, const char *))dlsym(handle, "plugin_start");
  plugin_begin = (void (*)(void))dlsym(handle, "plugin_begin_turn");
  plugin_end = (void (*)(void))dlsym(handle, "plugin_end_turn");
  plugin_stop = (void (*)(void))dlsym(handle, "plugin_stop");
  const char *threshold = getenv("STALLBENCH_THRESHOLD"), *output = getenv("STALLBENCH_OUTPUT");
  if (start) start(threshold ? (unsigned)atoi(threshold) : 200, output ? output : ".");
}

void bench_start(const char *set) {
  const char *path = getenv("STALLBENCH_TRUTH");
  if (path) connect_to_runner(path);
  if ((path = getenv("STALLBENCH_HEARTBEAT"))) share_heartbeat(path);
  heartbeat->process = getpid();
  heartbeat->thread = gettid();
  if ((path = getenv("STALLBENCH_PLUGIN"))) load_plugin(path);
  char line[128];
  snprintf(line, sizeof line, "{\"set\": \"%s\", \"pid\": %d}\n", set, getpid());
  send_line(line);
}

void bench_begin(const struct bench_case *it) {
  char line[512];
  bench_early_returns = 0;
  bench_gaps = 0;
  int length = snprintf(line, sizeof line,
                        "{\"case\": \"%s\", \"function\": \"%s\", \"file\": \"%s\", \"line\": %d, \"cause\": \"%s\", "
                        "\"milliseconds\": %u, \"healthy\": %s, \"thread\": %d, \"start\": ",
                        it->name, it->function, it->file, it->line, it->cause, it->milliseconds,
                        it->healthy ? "true" : "false", heartbeat->thread);
  snprintf(line + length, sizeof line - (size_t)length, "%.6f}\n", bench_now());
  send_line(line);
}

void bench_end(void) {
  char line[160];
  snprintf(line, sizeof line, "{\"end\": %.6f, \"early\": %u, \"gaps\": %.6f}\n", bench_now(), bench_early_returns,
           bench_gaps);
  send_line(line);
}

void bench_owner(int thread, const char *name, const char *function) {
  char line[200];
  snprintf(line, sizeof line, "{\"owner\": %d, \"owner name\": \"%s\", \"owner function\": \"%s\"}\n", thread, name,
           function);
  send_line(line);
}

__attribute__((noinline)) void bench_turn_begin(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  heartbeat->began = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
  heartbeat->turns++;
  is_open = true;
  if (plugin_begin) plugin_begin();
}

__attribute__((noinline)) void bench_turn_end(void) {
  if (!is_open) return;
  is_open = false;
  if (plugin_end) plugin_end();
  heartbeat->began = 0;
}

void bench_finish(void) {
  if (plugin_stop) plugin_stop();
  send_line("{\"done\": true}\n");
}
