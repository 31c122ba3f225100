// The ends of this library's stacks: each `end_` function stores the id of its calling thread and never returns.

#ifndef ENDS_H
#define ENDS_H

#ifdef __cplusplus
extern "C" {
#endif

/// The kernel id of the last thread that reached its end; 0 before. The waiting thread resets it to 0.
extern int stack_reached;

/// Stores the calling thread's id in `stack_reached`.
void note_thread(void);

void end_in_read(void);       ///< Blocked in a system call whose wrapper saves no register.
void end_in_condition(void);  ///< Blocked in pthread_cond_wait(3), some frames deep in the C library.
void end_in_sleep(void);      ///< Blocked in nanosleep(2).
void end_spinning(void);      ///< On CPU, at one instruction: a jump to itself.

#ifdef __cplusplus
}
#endif

#endif  // ENDS_H
