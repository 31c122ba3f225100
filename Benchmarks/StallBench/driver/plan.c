// Runs the cases of a set in an order that the seed decides, one turn at a time.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bench.h"

enum { MOST_CASES = 64, PAUSE = 90, PAUSE_RANGE = 50 };

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

static void plan(const char *set, uint64_t seed, const char *only) {
  const struct bench_case *cases;
  unsigned given = bench_cases_of(set, &cases);
  state = seed * 2 + 88172645463325252u;
  for (unsigned index = 0; index < given && count < MOST_CASES; index++) {
    char name[64];
    snprintf(name, sizeof name, ",%s,", cases[index].name);
    if (!only || strstr(only, name)) order[count++] = cases[index];
  }
  // A case that ends the process stays the last one.
  unsigned movable = count && strncmp(order[count - 1].name, "fatal", 5) == 0 ? count - 1 : count;
  for (unsigned index = movable; index > 1; index--) {
    unsigned other = draw(index);
    struct bench_case moved = order[index - 1];
    order[index - 1] = order[other];
    order[other] = moved;
  }
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
  if (argument_count < 3) {
    fprintf(stderr, "usage: %s SET SEED [,CASE,CASE,]\n", arguments[0]);
    return 2;
  }
  // As a program does that wants to be debugged: lets tools of the same user attach under Yama's scope 1.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  plan(arguments[1], strtoull(arguments[2], NULL, 10), argument_count > 3 ? arguments[3] : NULL);
  bench_run_loop(arguments[1]);
  bench_finish();
  return 0;
}
