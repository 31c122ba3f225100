import StallReports
internal import CoreFoundation
internal import Foundation

extension RunLoop {
    /// The CFRunLoop behind a RunLoop, on any thread.
    ///
    /// Foundation for Linux has no public way from one to the other (`getCFRunLoop` is internal there). The main thread's
    /// and the calling thread's are to be had by name; of another thread's, reflection shows the stored reference, which is
    /// believed only if it is a CFRunLoop.
    ///
    /// - Throws: ``StallWatchError/Code/systemFailure`` when reflection shows nothing, as in a program that is built
    ///   without reflection metadata.
    func coreFoundationRunLoop() throws(StallWatchError) -> CFRunLoop {
        if self === RunLoop.main, let main = CFRunLoopGetMain() { return main }
        if self === RunLoop.current, let current = CFRunLoopGetCurrent() { return current }
        let stored = Mirror(reflecting: self).descendant("_cfRunLoopStorage")
        if let object = stored.map({ $0 as AnyObject }), CFGetTypeID(object) == CFRunLoopGetTypeID() {
            // The type ID has just said what it is. Not a downcast: on Linux, Swift does not know the class behind a type
            // of CoreFoundation, and a debug build's check of the downcast ends the program.
            return Unmanaged<CFRunLoop>.fromOpaque(Unmanaged.passUnretained(object).toOpaque()).takeUnretainedValue()
        }
        throw StallWatchError(
            .systemFailure, "this run loop cannot be reached from another thread: watch it from its own thread"
        )
    }
}
