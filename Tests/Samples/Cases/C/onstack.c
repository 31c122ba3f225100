#include "common.h"
// (function, top of the new stack): with full CFI, as libraries that grow the stack do it.
__asm__(
    "    .text\n"
    "    .globl run_on_stack\n"
    "    .type run_on_stack, @function\n"
    "run_on_stack:\n"
    "    .cfi_startproc\n"
    "    push %rbp\n"
    "    .cfi_def_cfa_offset 16\n"
    "    .cfi_offset %rbp, -16\n"
    "    mov %rsp, %rbp\n"
    "    .cfi_def_cfa_register %rbp\n"
    "    mov %rsi, %rsp\n"
    "    call *%rdi\n"
    "    mov %rbp, %rsp\n"
    "    pop %rbp\n"
    "    .cfi_def_cfa %rsp, 8\n"
    "    ret\n"
    "    .cfi_endproc\n"
    "    .size run_on_stack, .-run_on_stack\n");
void run_on_stack(void (*)(void), void *);
static NOINLINE void deep_parser_nap(void) {
  nap(600);
  sink++;
}
static void *stack(void) {
  return (char *)mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0) + (1 << 20) -
         64;
}
NOINLINE void parse_document_nap(void) {
  run_on_stack(deep_parser_nap, stack());
  sink++;
}
void bnap(void) {
  parse_document_nap();
  sink++;
}
