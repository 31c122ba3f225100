# For gdb: prints every thread's frames as `frame TID ADDRESS FUNCTION`, and why they end as `end TID REASON`.
#
# Only what is on the stack: neither inlined functions, nor those that gdb infers from debug information because they
# were left by a tail call and must have been there. And no guesses: where a function has no unwind information (the wait
# of Dispatch's semaphore), gdb takes the word before the return address for one, a deadline there, and then goes on.

import gdb


def is_on_stack(frame):
    if frame.type() in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
        return False
    return frame.name() is not None or gdb.solib_name(frame.pc()) is not None


for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame = gdb.newest_frame()
    while frame is not None:
        if is_on_stack(frame):
            print("frame", thread.ptid[1], frame.pc(), frame.name() or "?")
        last = frame
        frame = frame.older()
    print("end", thread.ptid[1], gdb.frame_stop_reason_string(last.unwind_stop_reason()))
