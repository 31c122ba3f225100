// A program with a run loop that knows nothing of StallWatch.
import Foundation

@inline(never) func waitInATimer() { usleep(400_000) }

_ = Timer.scheduledTimer(withTimeInterval: 0.3, repeats: false) { _ in waitInATimer() }
_ = Timer.scheduledTimer(withTimeInterval: 1, repeats: false) { _ in
    print("done")
    exit(7)
}
RunLoop.main.run()
