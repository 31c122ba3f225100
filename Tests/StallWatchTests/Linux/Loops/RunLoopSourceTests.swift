import CoreFoundation
import Foundation
import Synchronization
import Testing

@testable import StallWatch

@Suite struct RunLoopCoreFoundationTests {
    /// A run loop as its own thread sees it.
    private final class Seen: @unchecked Sendable {
        // `@unchecked Sendable`: both are written before the semaphore is posted and read only afterwards.
        var runLoop: RunLoop?
        var address: UnsafeMutableRawPointer?
        let isThere = DispatchSemaphore(value: 0)
        let mayEnd = DispatchSemaphore(value: 0)
    }

    @Test func aRunLoopIsAccessibleFromAnotherThread() async throws {
        let seen = Seen()
        Thread.detachNewThread {
            seen.runLoop = RunLoop.current
            seen.address = CFRunLoopGetCurrent().map { Unmanaged.passUnretained($0).toOpaque() }
            seen.isThere.signal()
            seen.mayEnd.wait()
        }
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                seen.isThere.wait()
                continuation.resume()
            }
        }
        defer { seen.mayEnd.signal() }
        let runLoop = try #require(seen.runLoop).coreFoundationRunLoop()
        #expect(Unmanaged.passUnretained(runLoop).toOpaque() == seen.address)
    }
}
