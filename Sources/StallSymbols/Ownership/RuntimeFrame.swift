import StallReports

/// Frames that only pass a call on.
///
/// They are kept, and readers may fold them.
enum RuntimeFrame {
    /// The prefixes of the symbols that run run loops, queues, jobs and threads.
    private static let systemsOwn = [
        "__CFRUNLOOP_IS_", "__CFRunLoop", "_CFRunLoop", "CFRunLoopRun", "__CFMachPort", "_dispatch_",
        "__libc_start", "swift_job_run", "swift_task_run", "_ZN5swift34runJobInEstablishedExecutorContext",
        "_ZL23swift_job_runImpl", "$s10Foundation7RunLoopC3run", "$s10Foundation7RunLoopC13CurrentMode",
    ]
    /// The same symbols by their whole names.
    private static let systemsOwnExactly: Set<String> = [
        "_start", "start_thread", "clone", "clone3", "__clone", "__clone3", "async_MainTQ0_", "async_Main",
    ]

    /// Checks whether the function only passes a call or a value on.
    ///
    /// - Parameters:
    ///   - function: The demangled name.
    ///   - generated: The reason for which the compiler generated the function, if it did.
    ///   - symbol: The mangled name.
    /// - Returns: Whether it is such a function.
    static func contains(function: String?, generated: StallReport.CompilerGenerated?, symbol: String?) -> Bool {
        switch generated {
        case .thunk, .outlined, .metadata: return true
        default: break
        }
        if let function, function.hasSuffix(".$main()") { return true }
        guard let symbol else { return false }
        return systemsOwnExactly.contains(symbol) || systemsOwn.contains { symbol.hasPrefix($0) }
    }
}
