// The helpers of a thread, seen from another one.

#ifndef CUNWIND_CHILDREN_H
#define CUNWIND_CHILDREN_H

#include <sys/types.h>

/// Opens the list of a thread's children with any exit signal (proc(5), children). The caller closes it. Negative: the
/// list cannot be opened.
int cunwind_test_open_children(pid_t thread);

/// Returns the first child in the list now; 0 if there is none.
pid_t cunwind_test_first_child(int children);

#endif
