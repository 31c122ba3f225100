// The driver's main program: the plan, and the truth. The truth goes through a socket to the runner, so that a tool
// cannot read it. Beside it the driver publishes what any program may: a heartbeat in a shared file, and calls of a
// plugin, at the begin and the end of each turn.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
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
double bench_gaps, bench_excused;

static struct heartbeat private_heartbeat, *heartbeat = &private_heartbeat;
static int truth = -1;
static void (*plugin_begin)(void), (*plugin_end)(void), (*plugin_stop)(void);
/// Nested loops have turns of their own; the outer one goes on after them.
static bool is_open;
/// When the turn began, and the longest one of this case: a healthy case that the machine has stretched is not healthy.
static double turn_began, longest;
/// How long the case's thread had waited for a processor when the case began, in seconds. Negative if the kernel does not
/// say.
static double waited;

/// Seconds for which the loop's thread has been ready to run without a processor, since its start. The kernel counts them;
/// a thread that a tool has stopped is not ready to run.
static double time_waited_for_processor(void) {
  char path[64], text[96];
  snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", heartbeat->thread);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  unsigned long long ran, ready;
  text[length < 0 ? 0 : length] = 0;
  return sscanf(text, "%llu %llu", &ran, &ready) == 2 ? (double)ready / 1e9 : -1;
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
  if (start) start(threshold ? (unsigned)atoi(threshold) : 100, output ? output : ".");
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
  // First: the thread may lose its processor in what follows.
  double began = bench_now();
  bench_early_returns = 0;
  bench_gaps = 0;
  bench_excused = 0;
  longest = 0;
  waited = time_waited_for_processor();
  int length = snprintf(line, sizeof line,
                        "{\"case\": \"%s\", \"function\": \"%s\", \"file\": \"%s\", \"line\": %d, \"cause\": \"%s\", "
                        "\"milliseconds\": %u, \"healthy\": %s, \"thread\": %d, \"start\": ",
                        it->name, it->function, it->file, it->line, it->cause, it->milliseconds,
                        it->healthy ? "true" : "false", heartbeat->thread);
  snprintf(line + length, sizeof line - (size_t)length, "%.6f}\n", began);
  send_line(line);
}

void bench_end(void) {
  char line[200];
  double now = bench_now(), turn = now - turn_began, waits = time_waited_for_processor() - waited;
  // The gaps in which the thread only waited for a processor are no tool's doing.
  double stopped = waited < 0 ? -1 : bench_gaps > waits ? bench_gaps - waits : 0;
  snprintf(line, sizeof line, "{\"end\": %.6f, \"early\": %u, \"stopped\": %.6f, \"longest\": %.6f}\n", now,
           bench_early_returns, stopped, (turn > longest ? turn : longest) - bench_excused);
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
  turn_began = (double)time.tv_sec + (double)time.tv_nsec / 1e9;
  is_open = true;
  if (plugin_begin) plugin_begin();
}

__attribute__((noinline)) void bench_turn_end(void) {
  if (!is_open) return;
  is_open = false;
  double turn = bench_now() - turn_began;
  if (turn > longest) longest = turn;
  if (plugin_end) plugin_end();
  heartbeat->began = 0;
}

void bench_finish(void) {
  if (plugin_stop) plugin_stop();
  send_line("{\"done\": true}\n");
}

// The plan: the cases of a set in an order that the seed decides, one turn at a time.

enum { MOST_CASES = 160, PAUSE = 45, PAUSE_RANGE = 40 };

static struct bench_case order[MOST_CASES];
static unsigned count, current, turn;
static uint64_t state;

/// xorshift64*: good enough for an order, and the same everywhere.
static unsigned draw(unsigned limit) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (unsigned)((state * 2685821657736338717u) >> 33) % limit;
}

/// Swaps two cases.
static void swap(unsigned one, unsigned other) {
  struct bench_case moved = order[one];
  order[one] = order[other];
  order[other] = moved;
}

/// Collects the cases of all sets.
static unsigned collect(struct bench_case *all) {
  static const struct bench_case *const lists[] = {bench_busy, bench_waiting, bench_healthy};
  unsigned found = bench_more_cases ? bench_more_cases(all, MOST_CASES) : 0;
  for (unsigned list = 0; list < 3; list++) {
    for (const struct bench_case *it = lists[list]; it->name && found < MOST_CASES; it++) all[found++] = *it;
  }
  return found;
}

static void plan(const char *set, uint64_t seed, const char *only) {
  struct bench_case all[MOST_CASES];
  unsigned found = collect(all);
  state = seed * 2 + 88172645463325252u;
  for (unsigned index = 0; index < found; index++) {
    char name[64];
    snprintf(name, sizeof name, ",%s,", all[index].name);
    if (strcmp(all[index].set, set) == 0 && (!only || strstr(only, name))) order[count++] = all[index];
  }
  for (unsigned index = count; index > 1; index--) swap(index - 1, draw(index));
  // A case that ends the process is the last one.
  for (unsigned index = 0; index < count; index++) {
    if (strncmp(order[index].name, "fatal", 5) == 0) swap(index, count - 1);
  }
}

static int list_cases(void) {
  struct bench_case all[MOST_CASES];
  unsigned found = collect(all);
  for (unsigned index = 0; index < found; index++) {
    const struct bench_case *it = &all[index];
    printf("%-7s %-20s %-9s %4u ms x %-3u %s at %s:%d\n", it->set, it->name, it->healthy ? "healthy" : it->cause,
           it->milliseconds, it->turns, it->function, it->file, it->line);
  }
  return 0;
}

unsigned bench_first_pause(void) {
  const char *pause = getenv("STALLBENCH_FIRST_PAUSE");
  return pause ? (unsigned)atoi(pause) : 400;
}

int bench_step(void) {
  if (current == count) return -1;
  const struct bench_case *it = &order[current];
  if (it->deferred) {
    it->stall(it->milliseconds);
  } else {
    // The turns of a healthy case are one case; each repeat of a stall is a stall.
    if (!it->healthy || turn == 0) bench_begin(it);
    it->stall(it->milliseconds);
    if (!it->healthy || turn + 1 == it->turns) bench_end();
  }
  if (++turn < it->turns) return (int)it->pause;
  turn = 0;
  current++;
  // A deferred case needs its time after this turn.
  return (int)(PAUSE + draw(PAUSE_RANGE) + (it->deferred ? it->milliseconds : 0));
}

int main(int argument_count, char **arguments) {
  if (argument_count > 1 && strcmp(arguments[1], "--list") == 0) return list_cases();
  if (argument_count < 3) {
    fprintf(stderr, "usage: %s --list | SET SEED [,CASE,CASE,]\n", arguments[0]);
    return 2;
  }
  // As a program does that wants to be debugged: lets tools of the same user attach under Yama's scope 1.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  plan(arguments[1], strtoull(arguments[2], NULL, 10), argument_count > 3 ? arguments[3] : NULL);
  bench_run_loop(arguments[1]);
  bench_finish();
  return 0;
}
