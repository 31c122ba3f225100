import Dispatch
import Foundation

/// A wait of the standard libraries, 20 ms long.
enum SwiftWait: CaseIterable {
    case threadSleep
    case dispatchSemaphore
    case process

    static let milliseconds = 20

    /// Whether the thread blocks only in the function.
    var isOneCall: Bool { self != .process }

    /// The function of this file that waits.
    var function: String {
        switch self {
        case .threadSleep: "sleepInFoundation"
        case .dispatchSemaphore: "waitForASemaphore"
        case .process: "waitForAProcess"
        }
    }

    /// Waits, and returns whether the wait succeeded, whatever its duration.
    func callAsFunction() -> Bool {
        switch self {
        case .threadSleep: sleepInFoundation()
        case .dispatchSemaphore: waitForASemaphore()
        case .process: waitForAProcess()
        }
    }
}

@inline(never)
private func sleepInFoundation() -> Bool {
    Thread.sleep(forTimeInterval: Double(SwiftWait.milliseconds) / 1000)
    return true
}

@inline(never)
private func waitForASemaphore() -> Bool {
    let semaphore = DispatchSemaphore(value: 0)
    return semaphore.wait(timeout: .now() + .milliseconds(SwiftWait.milliseconds)) == .timedOut
}

@inline(never)
private func waitForAProcess() -> Bool {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sleep")
    process.arguments = ["\(Double(SwiftWait.milliseconds) / 1000)"]
    guard (try? process.run()) != nil else { return false }
    process.waitUntilExit()
    return !process.isRunning && process.terminationReason == .exit && process.terminationStatus == 0
}
