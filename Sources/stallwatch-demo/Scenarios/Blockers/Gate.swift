import CoreFoundation
import Foundation
import StallWatch

/// A gate at which a thread waits until another thread opens it.
struct Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func wait() { semaphore.wait() }

    func open() { semaphore.signal() }
}
