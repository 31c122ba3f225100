// A plug-in that its program loads with dlopen(3).
#include <unistd.h>

static volatile int calls;

__attribute__((constructor)) static void prepare(void) {
  usleep(600000);
  calls++;
}

void plugin_work(void) {
  usleep(600000);
  calls++;
}
