// A helper that ends only after its capture was given up.

#define _GNU_SOURCE
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../Sources/CUnwind/engine.h"
#include "CUnwindTestSupport.h"

int cunwind_test_late_helper(bool looks_again) {
  cunwind_engine *engine = cunwind_engine_create(27);
  if (!engine) return -errno;
  pid_t child = fork();
  if (child < 0) return -errno;
  if (child == 0) {
    usleep(10000);
    _exit(0);
  }
  engine->helper.unreaped = child;
  if (looks_again) {
    siginfo_t ended;
    // Not reaped by this.
    waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT);
    cunwind_engine_refresh_images(engine);
  } else {
    cunwind_engine_destroy(engine);
  }
  int left = waitpid(child, NULL, 0) == child;
  if (looks_again) cunwind_engine_destroy(engine);
  return left;
}
