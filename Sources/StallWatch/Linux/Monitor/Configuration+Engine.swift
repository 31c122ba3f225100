import LinuxSupport
import StallReports

extension StallMonitor.Configuration {
    var watchdogOptions: WatchdogOptions {
        WatchdogOptions(
            capturesAllThreads: detection.capturesAllThreads, ignoresDebugged: detection.whenDebugged == .ignore,
            saturationThreshold: detection.saturationThreshold.map(nanoseconds),
            modeRule: detection.modeStarvation.map { .init(limit: nanoseconds($0.limit), modalModes: $0.modalModes) },
            pinnedThreshold: detection.pinnedThreshold.map(nanoseconds),
            watchesPoolWithMain: detection.watchesPoolWithMain,
            escalationMultiple: escalation?.multiple
        )
    }

    /// The same with absolute paths of what is opened later: the program may change its directory before.
    var withFixedPlaces: Self {
        var fixed = self
        fixed.symbols.lookup.debugDirectories = symbols.lookup.debugDirectories.map { absolutePath($0) ?? $0 }
        fixed.control = control.map { Control.socket(directory: absolutePath($0.directory) ?? $0.directory) }
        return fixed
    }

    /// The absolute path of the first directory among the outputs, whose files logs name.
    var directory: String? {
        for case .directory(let path, _) in outputs.map(\.kind) { return absolutePath(path) }
        return nil
    }

    var terminationLog: FixedFile? {
        for case .terminationLog(let path) in outputs.map(\.kind) { return FileCreation.place(of: path) }
        return nil
    }

    var statisticsFiles: [FixedFile] {
        outputs.compactMap { if case .statistics(let path) = $0.kind { FileCreation.place(of: path) } else { nil } }
    }

    var sinks: [SinkFactory] {
        var hooks = HookSink(event: onEvent)
        if case .call(let body) = escalation?.action { hooks.escalated = body }
        let called: [SinkFactory] = hooks.isEmpty ? [] : [{ [hooks] _, _ in hooks.description }]
        return outputs.map { $0.factory(in: directory) } + called
    }
}

extension StallMonitor.Configuration.Health {
    var nanoseconds: UInt64 { LinuxSupport.nanoseconds(interval) }

    var recordInterval: UInt64? { path == nil ? nil : nanoseconds }
}
