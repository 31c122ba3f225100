import StallReports

/// Frames that only pass a call on.
///
/// They are kept, and readers may fold them.
enum RuntimeFrame {
    /// What runs run loops, queues, jobs and threads, by how the symbols begin.
    private static let systemsOwn = [
        "__CFRUNLOOP_IS_", "__CFRunLoop", "_CFRunLoop", "CFRunLoopRun", "__CFMachPort", "_dispatch_",
        "__libc_start", "swift_job_run", "swift_task_run", "_ZN5swift34runJobInEstablishedExecutorContext",
        "_ZL23swift_job_runImpl", "$s10Foundation7RunLoopC3run", "$s10Foundation7RunLoopC13CurrentMode",
    ]
    /// The same, by their whole name.
    private static let systemsOwnExactly: Set<String> = [
        "_start", "start_thread", "clone", "clone3", "__clone", "__clone3", "async_MainTQ0_", "async_Main",
    ]

    /// Whether the function is plumbing.
    ///
    /// `function` is the name as it was written, `symbol` the mangled name.
    static func contains(function: String?, symbol: String?) -> Bool {
        if let function, function.hasSuffix(".$main()") || isPassedThrough(function) { return true }
        guard let symbol else { return false }
        return systemsOwnExactly.contains(symbol) || systemsOwn.contains { symbol.hasPrefix($0) }
    }

    /// Whether the compiler generated the function to pass a call or a value on.
    private static func isPassedThrough(_ function: String) -> Bool {
        switch StallReport.CompilerGenerated(function: function) {
        case .thunk, .outlined, .metadata: true
        default: false
        }
    }
}
