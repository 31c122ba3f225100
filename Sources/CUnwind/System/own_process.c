#define _GNU_SOURCE
#include "System/own_process.h"

#include "../../CLinux/process_number.h"

uint32_t cunwind_process_number(void) { return process_number(); }
