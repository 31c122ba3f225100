#include "common.h"
void run_on_stack(void (*)(void), void *);
static NOINLINE void deep_parser_spin(void) {
  SPIN(600);
  sink++;
}
static NOINLINE void deep_parser_nap(void) {
  nap(600);
  sink++;
}
static void *stack(void) {
  return (char *)mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0) + (1 << 20) -
         64;
}
NOINLINE void parse_document_spin(void) {
  run_on_stack(deep_parser_spin, stack());
  sink++;
}
NOINLINE void parse_document_nap(void) {
  run_on_stack(deep_parser_nap, stack());
  sink++;
}
void bspin(void) {
  parse_document_spin();
  sink++;
}
void bnap(void) {
  parse_document_nap();
  sink++;
}
static NOINLINE void wait_a_second(void) {
  sleep(1);
  sink++;
}
NOINLINE void retry_on_new_stack(void) {
  run_on_stack(wait_a_second, stack());
  sink++;
}
void bsleep(void) {
  retry_on_new_stack();
  sink++;
}
