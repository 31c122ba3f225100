// The monitor of hangs in sentry-native as a plugin of the driver, used as its header says: a heartbeat where each turn
// begins, a pause while the loop waits, and a transport of the program's own, which writes each envelope to a file with
// the moment at which it came.
#include <sentry.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static FILE *output;

static void write_envelope(sentry_envelope_t *envelope, void *state) {
  (void)state;
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  size_t size = 0;
  char *text = sentry_envelope_serialize(envelope, &size);
  fprintf(output, "envelope %lld.%09ld\n%.*s\n", (long long)time.tv_sec, time.tv_nsec, (int)size, text ? text : "");
  fflush(output);
  sentry_free(text);
  sentry_envelope_free(envelope);
}

void plugin_start(unsigned milliseconds, const char *folder) {
  char path[4096], database[4096];
  snprintf(path, sizeof path, "%s/envelopes.txt", folder);
  snprintf(database, sizeof database, "%s/database", folder);
  output = fopen(path, "ae");
  sentry_options_t *options = sentry_options_new();
  sentry_options_set_database_path(options, database);
  sentry_options_set_auto_session_tracking(options, 0);
  sentry_options_set_transport(options, sentry_transport_new(write_envelope));
  sentry_options_set_enable_app_hang_tracking(options, 1);
  sentry_options_set_app_hang_timeout(options, milliseconds);
  if (!output || sentry_init(options)) abort();
}

void plugin_begin_turn(void) { sentry_app_hang_heartbeat(); }

void plugin_end_turn(void) { sentry_app_hang_pause(); }

void plugin_stop(void) { sentry_close(); }
