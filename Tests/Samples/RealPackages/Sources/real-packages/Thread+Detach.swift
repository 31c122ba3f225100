import Foundation

/// Threads of Foundation's for blocking others.
enum Thread {
    static func detach(_ body: @escaping @Sendable () -> Void) {
        Foundation.Thread.detachNewThread(body)
    }
}
