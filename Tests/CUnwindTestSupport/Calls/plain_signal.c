// Sends a thread a signal as other monitors do: the reference for the captures.

#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"

static void do_nothing(int signal_number) { (void)signal_number; }

bool cunwind_test_send_plain_signal(pid_t tid) {
  struct sigaction action = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
  return sigaction(SIGRTMIN + 7, &action, NULL) == 0 && tgkill(getpid(), tid, SIGRTMIN + 7) == 0;
}
