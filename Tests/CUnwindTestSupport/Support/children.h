// The helpers of a thread, seen from another one.

#ifndef CUNWIND_CHILDREN_H
#define CUNWIND_CHILDREN_H

#include <sys/types.h>

/// Opens the list of the children of a thread of this process, of any exit signal (proc(5), children). A negative number: it
/// cannot be opened. The caller closes it.
int cunwind_test_open_children(pid_t thread);

/// The first child in the list now; 0 when there is none.
pid_t cunwind_test_first_child(int children);

#endif
