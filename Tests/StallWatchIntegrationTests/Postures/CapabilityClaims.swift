import StallReports

/// The claims of capabilities, compared with reports of the same process.
struct CapabilityClaims {
    let capabilities: Capabilities
    /// The reports of the main stalls.
    let reports: [StallReport]

    /// Every claim that the reports contradict, in words; empty if all hold.
    var contradictions: [String] {
        var found: [String] = []
        /// A feature that works has to be seen, and one that is missing must not be.
        func check(_ name: Capabilities.FeatureName, _ isSeen: Bool, _ what: String, unless isReplaced: Bool = false) {
            switch capabilities[name]?.state {
            case .works?: if !isSeen, !isReplaced { found.append("\(name.rawValue) works, but no report has \(what)") }
            case .missing?: if isSeen { found.append("\(name.rawValue) is missing, but a report has \(what)") }
            default: break
            }
        }
        /// A feature that is missing must not be seen. One that works need not be.
        func checkAbsence(_ name: Capabilities.FeatureName, _ isSeen: Bool, _ what: String) {
            guard capabilities[name]?.state == .missing, isSeen else { return }
            found.append("\(name.rawValue) is missing, but a report has \(what)")
        }
        let samples = reports.flatMap(\.samples)
        let causes = reports.compactMap(\.cause)
        let permitted = reports.map { $0.monitor.captureMethods ?? [] }
        check(.read, samples.contains { $0.method == .read }, "a sample by read")
        // A thread that waits for a CPU is sampled by perf.
        let isSampled = samples.contains { $0.method == .perf }
        check(.ptrace, samples.contains { $0.method == .ptrace }, "a sample by ptrace", unless: isSampled)
        check(.ptrace, permitted.allSatisfy { $0.contains(.ptrace) }, "ptrace in captureMethods")
        check(.signal, samples.contains { $0.method == .signal }, "a sample by signal", unless: isSampled)
        checkAbsence(.perf, permitted.contains { $0.contains(.perf) }, "perf in captureMethods")
        check(.waitChannel, causes.contains { $0.waitChannel != nil }, "a wait channel")
        check(.kernelStack, causes.contains { $0.kernelStack != nil }, "a kernel stack")
        check(.status, causes.contains { $0.voluntarySwitches > 0 }, "context switches")
        check(.pressure, causes.contains { $0.pressure != nil }, "pressure")
        check(.bootID, reports.allSatisfy { $0.process.bootID != nil }, "a boot id")
        checkAbsence(
            .schedstat, causes.contains { $0.kind == .sleep && $0.confidence == .certain }, "a certain cause of a wait")
        checkAbsence(
            .stat, causes.contains { $0.kernelShare != nil || $0.majorFaults > 0 }, "faults or the kernel's share")
        if capabilities[.read]?.state == .works {
            check(.syscall, causes.contains { $0.systemCall != nil }, "a system call")
        }
        let hasLines = reports.flatMap(\.frames).contains { $0.line != nil }
        checkAbsence(.libdw, hasLines, "lines")
        if capabilities[.libdw]?.state == .works { check(.debugInformation, hasLines, "lines") }
        let functions = Set(reports.flatMap(\.frames).compactMap(\.function))
        check(.symbols, PostureRun.expected.contains { functions.contains($0.function) }, "a function")
        return found
    }
}
