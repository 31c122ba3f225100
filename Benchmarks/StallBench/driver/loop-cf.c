// The main run loop of CoreFoundation, with observers that tell when a turn begins and ends.
#include <CoreFoundation/CoreFoundation.h>

#include "bench.h"

static void observe(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info) {
  (void)observer, (void)info;
  if (activity == kCFRunLoopAfterWaiting || activity == kCFRunLoopEntry) {
    bench_turn_begin();
  } else {
    bench_turn_end();
  }
}

static void step(CFRunLoopTimerRef timer, void *info) {
  (void)timer, (void)info;
  int pause = bench_step();
  if (pause < 0) {
    CFRunLoopStop(CFRunLoopGetMain());
    return;
  }
  CFRunLoopTimerRef next =
      CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + pause / 1e3, 0, 0, 0, step, NULL);
  CFRunLoopAddTimer(CFRunLoopGetMain(), next, kCFRunLoopCommonModes);
  CFRelease(next);
}

void bench_run_loop(const char *set) {
  bench_start(set);
  CFRunLoopObserverRef observer = CFRunLoopObserverCreate(
      NULL, kCFRunLoopEntry | kCFRunLoopAfterWaiting | kCFRunLoopBeforeWaiting | kCFRunLoopExit, true, 0, observe, NULL);
  CFRunLoopAddObserver(CFRunLoopGetMain(), observer, kCFRunLoopCommonModes);
  CFRunLoopTimerRef first = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 0.4, 0, 0, 0, step, NULL);
  CFRunLoopAddTimer(CFRunLoopGetMain(), first, kCFRunLoopCommonModes);
  CFRunLoopRun();
  bench_turn_end();
}

void bench_run_nested(unsigned milliseconds) {
  CFRunLoopRunInMode(kCFRunLoopDefaultMode, milliseconds / 1e3, false);
}
