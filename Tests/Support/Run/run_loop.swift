// A program with a run loop that knows nothing of StallWatch, and waits for a monitor that is loaded into it.
import Foundation

@inline(never) func waitInATimer() { usleep(400_000) }

while system("cd /proc/$PPID; ! grep -q WatchPre maps || grep -qs watch-dog task/*/comm || ! sleep .1") != 0 {}
_ = Timer.scheduledTimer(withTimeInterval: 0.3, repeats: false) { _ in waitInATimer() }
_ = Timer.scheduledTimer(withTimeInterval: 1, repeats: false) { _ in
    print("done")
    exit(7)
}
RunLoop.main.run()
