// A program with a GLib main loop that knows nothing of StallWatch. The first argument says what it does.

#include <glib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/// Longer than the threshold of the tests.
#define LONG_MICROSECONDS 400000

static GMainLoop *loop;

static gboolean wait_in_a_callback(gpointer data) {
  (void)data;
  usleep(LONG_MICROSECONDS);
  return G_SOURCE_REMOVE;
}

static gboolean quit(gpointer nested) {
  g_main_loop_quit(nested);
  return G_SOURCE_REMOVE;
}

static gboolean run_a_nested_loop(gpointer data) {
  (void)data;
  GMainLoop *nested = g_main_loop_new(NULL, FALSE);
  g_timeout_add(2 * LONG_MICROSECONDS / 1000, quit, nested);
  g_main_loop_run(nested);
  g_main_loop_unref(nested);
  return G_SOURCE_REMOVE;
}

static gint poll_of_its_own(GPollFD *descriptors, guint count, gint timeout) {
  return g_poll(descriptors, count, timeout);
}

static gboolean replace_the_poll_function(gpointer data) {
  (void)data;
  g_main_context_set_poll_func(NULL, poll_of_its_own);
  return G_SOURCE_REMOVE;
}

/// Runs the loop for a second, with a callout some time after the monitor runs that may be loaded into the program.
static void run_loop(GSourceFunc callout, const char *name, guint milliseconds) {
  loop = g_main_loop_new(NULL, FALSE);
  const char *runs = "cd /proc/$PPID; ! grep -q WatchPre maps || grep -qs watch-dog task/*/comm || ! sleep .1";
  while (callout && system(runs) != 0) continue;
  guint source = callout ? g_timeout_add(300, callout, NULL) : 0;
  if (name) g_source_set_name_by_id(source, name);
  g_timeout_add(milliseconds, quit, loop);
  g_main_loop_run(loop);
  g_main_loop_unref(loop);
}

/// The signals 32 and 33, which the C library keeps for itself and changes when a process gets a second thread.
#define SIGNALS_OF_THE_C_LIBRARY 0x180000000ull

/// Prints which signals are blocked and ignored.
static void print_signals(void) {
  char line[256];
  FILE *status = fopen("/proc/self/status", "re");
  while (status && fgets(line, sizeof line, status)) {
    if (strncmp(line, "SigBlk:", 7) != 0 && strncmp(line, "SigIgn:", 7) != 0) continue;
    printf("%.6s %llx\n", line, strtoull(line + 7, NULL, 16) & ~SIGNALS_OF_THE_C_LIBRARY);
  }
  if (status) fclose(status);
}

/// Forks children that go on without execve(2), while the monitor is loaded.
static int fork_children(void) {
  int failures = 0;
  for (int count = 0; count < 200; count++) {
    pid_t child = fork();
    if (child == 0) exit(3);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 3) failures++;
    usleep(500);
  }
  return failures;
}

static void exit_at_once(int signal) {
  (void)signal;
  exit(3);
}

/// Ends in a handler that nearly always interrupts malloc(3) or free(3), which hold a lock.
static void end_in_a_handler(void) {
  // The tests may block it.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGALRM, exit_at_once);
  ualarm(20000, 0);
  for (size_t size = 2000;; size = (size * 7 + 2000) % 100000) {
    void *volatile memory = malloc(size);
    free(memory);
  }
}

int main(int count, char **arguments) {
  const char *what = count > 1 ? arguments[1] : "";
  if (strcmp(what, "stall") == 0) {
    run_loop(wait_in_a_callback, "save the notes", 1000);
  } else if (strcmp(what, "unnamed") == 0) {
    run_loop(wait_in_a_callback, NULL, 1000);
  } else if (strcmp(what, "end") == 0) {
    run_loop(NULL, NULL, 600);
    usleep(2 * LONG_MICROSECONDS);
  } else if (strcmp(what, "nest") == 0) {
    run_loop(run_a_nested_loop, NULL, 1500);
  } else if (strcmp(what, "poll") == 0) {
    run_loop(replace_the_poll_function, NULL, 2500);
  } else if (strcmp(what, "quick") == 0) {
    run_loop(NULL, NULL, 0);
  } else if (strcmp(what, "handler") == 0) {
    run_loop(wait_in_a_callback, NULL, 1000);
    end_in_a_handler();
  } else if (strcmp(what, "signal") == 0) {
    // The tests may block it.
    sigset_t none;
    sigemptyset(&none);
    signal(atoi(arguments[2]), SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    kill(getpid(), atoi(arguments[2]));
  } else if (strcmp(what, "fork") == 0) {
    return fork_children();
  } else if (strcmp(what, "child") == 0) {
    return system("env | grep -E '^(LD_PRELOAD|STALLWATCH_)' | cut -d= -f1 | sort");
  } else if (strcmp(what, "start") == 0) {
    // Starts this program again as a child, to do the rest.
    return execl("/bin/sh", "sh", "-c", "\"$0\" \"$1\"; exit $?", arguments[0], arguments[2], NULL);
  }
  for (int index = 0; index < count; index++) printf("argument %d: %s\n", index, arguments[index]);
  char line[256];
  while (fgets(line, sizeof line, stdin)) printf("input: %s", line);
  print_signals();
  fprintf(stderr, "to standard error\n");
  return 7;
}
