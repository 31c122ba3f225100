// What other monitors do to a thread: a signal. The reference that the captures are held against.

#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"

static void do_nothing(int signal_number) { (void)signal_number; }

// SIGPROF, because the threads of a test that dispatch runs inherit a mask that blocks nearly every other.
bool cunwind_test_send_plain_signal(pid_t tid) {
  struct sigaction action = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
  return sigaction(SIGPROF, &action, NULL) == 0 && tgkill(getpid(), tid, SIGPROF) == 0;
}
