import StallReports
internal import CoreFoundation
internal import Foundation

extension RunLoop {
    /// Returns the CFRunLoop of this run loop, on any thread.
    ///
    /// Foundation for Linux has no public function for this (`getCFRunLoop` is internal). CoreFoundation gives the main
    /// thread's and the calling thread's CFRunLoop. For other threads, reflection finds the stored reference, and its
    /// type ID must be that of a CFRunLoop.
    ///
    /// - Returns: The CFRunLoop.
    /// - Throws: ``StallWatchError/Code/systemFailure`` if reflection finds no such reference, as in a program that is
    ///   built without reflection metadata.
    func coreFoundationRunLoop() throws(StallWatchError) -> CFRunLoop {
        if self === RunLoop.main, let main = CFRunLoopGetMain() { return main }
        if self === RunLoop.current, let current = CFRunLoopGetCurrent() { return current }
        let stored = Mirror(reflecting: self).descendant("_cfRunLoopStorage")
        if let object = stored.map({ $0 as AnyObject }), CFGetTypeID(object) == CFRunLoopGetTypeID() {
            // Safe: the type ID has just been checked. This is no downcast, because Swift on Linux does not know the
            // classes of CoreFoundation's types, and the check of a downcast ends a debug build.
            return Unmanaged<CFRunLoop>.fromOpaque(Unmanaged.passUnretained(object).toOpaque()).takeUnretainedValue()
        }
        throw StallWatchError(
            .systemFailure, "the run loop cannot be accessed from another thread: call watch(_:) on its own thread"
        )
    }
}
