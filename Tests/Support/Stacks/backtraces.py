# A gdb script: prints every thread's frames as `frame TID ADDRESS FUNCTION`, or `unknown TID ADDRESS ?` in code of no image,
# and the reason why each stack ends as `end TID REASON`.
#
# Prints only frames on the stack: neither inlined functions, nor tail-call frames that gdb infers from debug
# information. Guesses are excluded, too: in a function without unwind information (the wait of Dispatch's semaphore),
# gdb takes the word before the return address, there a deadline, for a return address and continues.

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
        elif frame.type() == gdb.NORMAL_FRAME:
            print("unknown", thread.ptid[1], frame.pc(), "?")
        last = frame
        frame = frame.older()
    print("end", thread.ptid[1], gdb.frame_stop_reason_string(last.unwind_stop_reason()))
