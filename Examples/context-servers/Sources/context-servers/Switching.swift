import Foundation
import StallWatch
import Synchronization

/// Other tasks and threads that change their contexts all the time.
enum Switching {
    private static let count = Atomic<Int>(0)

    /// The changes so far.
    static var switches: Int { count.load(ordering: .relaxed) }

    static func start() {
        Thread {
            while true {
                for number in 0..<5 {
                    withStallContext("thread \(number)") { _ = count.add(1, ordering: .relaxed) }
                }
                usleep(1_000)
            }
        }.start()
        Task(name: "other") {
            while true {
                for number in 0..<5 {
                    await StallContext.$current.withValue(StallContext("other \(number)")) {
                        await Task.yield()
                        _ = count.add(1, ordering: .relaxed)
                    }
                }
                try? await Task.sleep(for: .milliseconds(1))
            }
        }
    }
}
