// Where the stacks of this library end: each `end_` function notes the thread that called it and never returns.

#ifndef ENDS_H
#define ENDS_H

#ifdef __cplusplus
extern "C" {
#endif

/// The kernel id of the thread that came to its end last; 0 before. Put back to 0 by whoever waits for it.
extern int stack_reached;

/// Notes the calling thread.
void note_thread(void);

void end_in_read(void);       ///< Blocked in a system call whose wrapper saves no register.
void end_in_condition(void);  ///< Blocked in pthread_cond_wait(3), some frames deep in the C library.
void end_in_sleep(void);      ///< Blocked in nanosleep(2).
void end_spinning(void);      ///< On CPU, at one instruction: a jump to itself.

#ifdef __cplusplus
}
#endif

#endif  // ENDS_H
