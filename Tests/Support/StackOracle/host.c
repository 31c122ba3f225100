// Captures threads that know their stacks, and waits until gdb has captured them, too.
//
//     host THREADS SEED [LIBRARY [namespace]]
//
// The threads' functions are in this program, or in LIBRARY, or in LIBRARY in a namespace of its own. Prints what
// chain_prepare prints; for each capture `capture UNWINDER THREAD METHOD END` and for each frame `frame ADDRESS EXACT
// UNCERTAIN SOURCE`, innermost first; for each thread `thread THREAD` and for each entry of its shadow stack `entry CALLER
// OWNER`, outermost first; at last `ready`. Ends at the end of standard input.
//
// If the environment's DEBUG_FRAME is a file with the section .debug_frame of the functions' image, the threads are captured
// first without it, by the UNWINDER "before".

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "CUnwind.h"
#include "chain.h"

__attribute__((weak)) void chain_prepare(void);
__attribute__((weak)) void *chain_main(void *argument);

static _Noreturn void fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(2);
}

static void capture(const char *unwinder, int tid, cunwind_engine *engine) {
  static cunwind_stack stack;
  cunwind_thread *thread = cunwind_thread_open(tid, CUNWIND_ALL_THREAD_FILES, NULL);
  cunwind_thread_status shown;
  cunwind_capture_info info;
  if (!thread || cunwind_thread_inspect(thread, &shown) != CUNWIND_OK) fail("no such thread");
  for (int by_stop = !shown.is_blocked; by_stop < 2; by_stop++) {
    cunwind_status status = CUNWIND_FAILED;
    // A machine may be too busy for a thread to stop in time.
    for (int round = 0; status != CUNWIND_OK && round < 100; round++) {
      if (round) usleep(10000);
      status = (by_stop ? cunwind_capture_stop : cunwind_capture_read)(engine, thread, &stack, &info);
    }
    if (status != CUNWIND_OK) fail("a capture failed");
    printf("capture %s %d %s %d\n", unwinder, tid, by_stop ? "stop" : "read", stack.end);
    for (const cunwind_frame *frame = stack.frames; frame < stack.frames + stack.frame_count; frame++)
      printf("frame %lu %d %d %d\n", frame->address, frame->is_exact, frame->is_uncertain, frame->source);
  }
  cunwind_thread_close(thread);
}

static void add_debug_frame(cunwind_engine *engine, const char *path, uint64_t code) {
  static char section[1 << 20];
  FILE *file = fopen(path, "r");
  size_t size = file ? fread(section, 1, sizeof section, file) : 0;
  cunwind_image image;
  for (size_t index = 0; cunwind_engine_image(engine, index, &image); index++)
    if (image.low <= code && code < image.high && cunwind_add_debug_frame(&image, section, size)) return;
  fail("the section .debug_frame is not accepted");
}

int main(int count, char **arguments) {
  if (count < 3) fail("usage: host THREADS SEED [LIBRARY [namespace]]");
  int threads = atoi(arguments[1]);
  void (*prepare)(void) = chain_prepare;
  void *(*first)(void *) = chain_main;
  if (count > 3) {
    void *library = dlmopen(count > 4 ? LM_ID_NEWLM : LM_ID_BASE, arguments[3], RTLD_NOW);
    if (!library) fail(dlerror());
    prepare = (void (*)(void))dlsym(library, "chain_prepare");
    first = (void *(*)(void *))dlsym(library, "chain_main");
  }
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  prepare();
  thread *all = calloc((size_t)threads, sizeof *all);
  for (thread *each = all; each < all + threads; each++) {
    pthread_t started;
    each->seed = (unsigned)atoi(arguments[2]) + (unsigned)(each - all) * 7919u;
    if (pthread_create(&started, NULL, first, each)) fail("no thread");
    for (int round = 0; !__atomic_load_n(&each->reached, __ATOMIC_ACQUIRE); round++) {
      if (round == 10000) fail("a thread does not reach its innermost function");
      usleep(1000);
    }
  }
  // A thread says that it is there just before it blocks.
  usleep(50000);
  for (int round = 0; round < 2; round++) {
    setenv("STALLWATCH_UNWINDER", round ? "builtin" : "", 1);
    cunwind_engine *engine = cunwind_engine_create(&(cunwind_options){.signal_number = SIGPROF});
    if (!engine) fail("no engine");
    cunwind_engine_refresh_images(engine);
    const char *section = round ? NULL : getenv("DEBUG_FRAME");
    for (int index = 0; section && index < threads; index++) capture("before", all[index].tid, engine);
    if (section) add_debug_frame(engine, section, (uint64_t)(uintptr_t)prepare);
    for (int index = 0; index < threads; index++) capture(round ? "built-in" : "libunwind", all[index].tid, engine);
  }
  for (thread *each = all; each < all + threads; each++) {
    printf("thread %d\n", each->tid);
    for (struct entry *entry = each->entries; entry < each->entries + each->depth; entry++)
      printf("entry %lu %lu\n", (unsigned long)entry->caller, (unsigned long)entry->owner);
  }
  printf("ready\n");
  fflush(stdout);
  while (getchar() != EOF) continue;
  _exit(0);
}
