#include "common.h"
// BH_SWAP=from:to
void swap(void) {
  char b[1000];
  snprintf(b, sizeof b, "%s", getenv("BH_SWAP"));
  char *c = strchr(b, ':');
  *c = 0;
  if (rename(b, c + 1)) perror("rename");
}
