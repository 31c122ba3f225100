// Calls a function of Swift.
#include <stdint.h>

intptr_t exported_hash(intptr_t rounds);

void call_hash(intptr_t *result) { *result += exported_hash(10); }
