// Functions as people and JIT compilers write them: without call frame information, types and sizes. Each has its `thread`
// in rdi, adds an entry to the shadow stack, and calls the next function of the plan. The decoy in rdx is the return address
// of the function's caller, which is on the stack already: whoever takes it for this function's own loses a frame.

#include "chain.h"

.macro BEGIN name
    .balign 16, 0xcc
    .globl \name
    .hidden \name
\name:
.endm

// Adds the entry of this function, whose return address is at `place`.
.macro RECORD name, place
    mov (%rdi), %rax; shl $4, %rax
    mov \place, %rcx; mov %rcx, ENTRIES(%rdi,%rax)
    lea \name(%rip), %rcx; mov %rcx, ENTRIES+8(%rdi,%rax)
    mov ENTRIES-16(%rdi,%rax), %rdx
    incq (%rdi)
.endm

.macro NEXT jump=call
    mov STEP(%rdi), %rax; incq STEP(%rdi)
    \jump *PLAN(%rdi,%rax,8)
.endm

    .section chain_text, "ax", @progbits
BEGIN asm_begin

BEGIN asm_framed
    push %rbp; mov %rsp, %rbp; push %rdi; push %rdx
    RECORD asm_framed, 8(%rbp)
    NEXT
    mov -8(%rbp), %rdi; decq (%rdi); leave; ret

BEGIN asm_plain
    push %rdi
    RECORD asm_plain, 8(%rsp)
    NEXT
    pop %rdi; decq (%rdi); ret

BEGIN asm_arguments  // Pushes arguments, and takes them off later.
    push %rbx; push %r12; mov %rdi, %rbx
    RECORD asm_arguments, 16(%rsp)
    sub $8, %rsp; push $7; push %rdx
    NEXT
    decq (%rbx); add $24, %rsp; pop %r12; pop %rbx; ret

BEGIN asm_branches  // Has two ways out, and one before the prologue.
    cmpq $0, (%rdi); js 9f
    lea -40(%rsp), %rsp; mov %rdi, 32(%rsp)
    RECORD asm_branches, 40(%rsp)
    mov %rdx, 8(%rsp)
    NEXT
    mov 32(%rsp), %rdi; decq (%rdi); jz 8f
    lea 40(%rsp), %rsp
9:  ret
8:  add $40, %rsp; jmp 9b

BEGIN asm_pointer  // Keeps a pointer to locals in rbp. They look like a frame record.
    push %rbp; push %rdi; sub $24, %rsp
    RECORD asm_pointer, 40(%rsp)
    lea 32(%rsp), %rcx; mov %rcx, (%rsp); mov %rdx, 8(%rsp)
    lea (%rsp), %rcx; mov %rcx, %rbp
    NEXT
    add $24, %rsp; pop %rdi; pop %rbp; decq (%rdi); ret

BEGIN asm_aligned  // Aligns its frame, and keeps the old stack pointer in rbx.
    push %rbx; mov %rsp, %rbx; and $-64, %rsp; sub $64, %rsp; mov %rdi, 8(%rsp)
    RECORD asm_aligned, 8(%rbx)
    mov %rdx, (%rsp)
    NEXT
    mov 8(%rsp), %rdi; decq (%rdi); mov %rbx, %rsp; pop %rbx; ret

BEGIN asm_no_call  // Pushes a return address that follows no call.
    push %rdi
    RECORD asm_no_call, 8(%rsp)
    lea 1f(%rip), %rcx; push %rcx
    NEXT jmp
1:  pop %rdi; decq (%rdi); ret

BEGIN asm_tail  // Is not on the stack when the next function runs.
    sub $24, %rsp; mov %rdi, (%rsp); add $24, %rsp
    NEXT jmp

BEGIN asm_callee_pops  // Calls a function that takes its arguments off the stack.
    push %rdi
    RECORD asm_callee_pops, 8(%rsp)
    push %rdx; push $1; call asm_pops
    pop %rdi; decq (%rdi); ret
BEGIN asm_pops
    push %rdi
    RECORD asm_pops, 8(%rsp)
    NEXT
    pop %rdi; decq (%rdi); ret $16

BEGIN asm_other_stack
    push %rbp; mov %rsp, %rbp; push %rdi
    RECORD asm_other_stack, 8(%rbp)
    mov OTHER(%rdi), %rsp
    NEXT
    mov -8(%rbp), %rdi; decq (%rdi); mov %rbp, %rsp; pop %rbp; ret

BEGIN asm_last_call  // Its last instruction is the call, which does not return. Another function follows.
    RECORD asm_last_call, (%rsp)
    push %rdi; push %rdx; push %rdx
    NEXT
asm_after_last_call:
    mov (%rdi), %rax; ret

// ---- Innermost functions: they never return, although some have a return.

BEGIN asm_red_zone  // Has locals in the red zone only, and no way out.
    RECORD asm_red_zone, (%rsp)
    mov %rdx, -8(%rsp); mov %rdx, -16(%rsp); movq $1, REACHED(%rdi)
1:  pause; jmp 1b

BEGIN asm_unwritten  // Has locals that it has not written, and no way out.
    sub $264, %rsp
    RECORD asm_unwritten, 264(%rsp)
    movq $1, REACHED(%rdi)
1:  pause; jmp 1b

BEGIN asm_data  // Keeps the address of its caller's data in rbp, as code for ciphers does. No way out.
    push %rbx; push %rbp; mov %rsi, %rbp
    RECORD asm_data, 16(%rsp)
    movq $1, REACHED(%rdi)
1:  pause; jmp 1b

BEGIN asm_epilogue  // Is in its epilogue.
    push %rbx; sub $64, %rsp
    RECORD asm_epilogue, 72(%rsp)
    mov %rdx, 56(%rsp); movq $1, REACHED(%rdi)
    add $64, %rsp
1:  cmpq $0, (%rdi); jne 1b
    pop %rbx; ret

BEGIN asm_call  // Waits in the kernel: pause(2).
    sub $24, %rsp
    RECORD asm_call, 24(%rsp)
    mov %rdx, (%rsp); movq $1, REACHED(%rdi)
1:  mov $34, %eax; syscall; jmp 1b

BEGIN asm_busy  // Is in any instruction of short functions.
    push %rbx; mov %rdi, %rbx
    RECORD asm_busy, 8(%rsp)
    movq $1, REACHED(%rdi)
1:  call asm_busy_tick; cmpq $0, (%rbx); jne 1b
    pop %rbx; ret
asm_busy_tick:
    push %rbp; push %rbx; sub $8, %rsp; mov $5, %ebp; xor %ebx, %ebx; mov %rdx, (%rsp)
    call asm_busy_tock
    add $8, %rsp; pop %rbx; pop %rbp; ret
asm_busy_tock:
    sub $24, %rsp; mov %rdx, 8(%rsp); add $24, %rsp; ret

BEGIN asm_end
    .section .note.GNU-stack, "", %progbits
