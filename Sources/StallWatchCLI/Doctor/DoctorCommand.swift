import ArgumentParser
import Glibc
import LinuxSupport
import StallReports
import TextOutput

struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Say what works here, what reports lack, and what to set.",
        usage: "stallwatch doctor [<process>] [--prove] [<options>]",
        discussion: """
            Without a process, the tool tries what a program that is started like it could do. With one, it asks \
            the monitor in that process, whose configuration has to set control = .socket(directory:); without a socket it \
            prints what /proc shows. The process may be in a container that the tool can see into; the tool has to run as \
            its user or as root.

            Every missing feature comes with its loss and with the flags, packages or versions that would give it. A monitor \
            also says what it has cost since its start, by its own clocks; neither memory, nor other descriptors, nor the \
            clock reads in the loops' turns, nor the helper process of each hold (0.1 ms of CPU) is measured. With --prove it \
            stalls a loop of its own four times, by sleep, a lock, computing and a pipe, and compares what it finds with what \
            happened: that takes a second, under a CPU quota up to ten. No output gets these stalls. Exit status: 1 when \
            there is no such process or no monitor in it, and when the proof fails; 77 when it is another user's.

            Examples:
              stallwatch doctor notes
              stallwatch doctor notes --prove
              stallwatch doctor
              docker exec notes stallwatch doctor --json
              stallwatch doctor --report >system.md
            """
    )

    @Argument(help: ArgumentHelp("The id or the name of a process with a monitor.", valueName: "process"))
    var process: String?

    @Flag(help: "Print Markdown for an issue about another system: also its distribution, C library and Swift.")
    var report = false

    @Flag(help: "Let the monitor in a process, by default the only one, prove that it finds and explains stalls.")
    var prove = false

    @OptionGroup var output: TextOrJSONOptions

    func validate() throws {
        if report, output.json { throw ValidationError("--report is Markdown: leave out --json.") }
        try LiveArguments.check(process)
    }

    func run() throws {
        let diagnosis =
            process == nil && !prove
            ? Diagnosis.ofTool() : try Diagnosis(ofProcess: InspectedProcess.pid(of: process), proves: prove)
        if report {
            let system = SystemDescription(release: readSmallFile("/etc/os-release"))
            try StandardOutput.write(system.markdown(diagnosis))
        } else {
            try output.write(diagnosis) { diagnosis.text(for: $0) }
        }
        if let process = diagnosis.process, !process.isMonitored { throw process.notMonitored }
        if diagnosis.proof?.isWhole == false { throw ExitCode(CommandFailure.Status.nothing.rawValue) }
    }
}

struct SystemDescription {
    var distribution = "unknown"
    /// "glibc 2.36".
    var library = Self.libraryVersion
    var processors = sysconf(Int32(_SC_NPROCESSORS_ONLN))

    /// `release` is the file os-release(5).
    init(release: String?) {
        let key = "PRETTY_NAME="
        let line = release?.split(separator: "\n").first { $0.hasPrefix(key) }
        if let line { distribution = line.dropFirst(key.count).trimmingPrefix("\"").filter { $0 != "\"" } }
    }

    private static var libraryVersion: String {
        var text = [CChar](repeating: 0, count: 64)
        guard confstr(Int32(_CS_GNU_LIBC_VERSION), &text, text.count) > 0 else { return "unknown" }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// The oldest Swift that compiles as the tool's compiler does.
    private static var swift: String {
        #if compiler(>=6.4)
            "6.4 or newer"
        #elseif compiler(>=6.3)
            "6.3"
        #else
            "6.2"
        #endif
    }

    func markdown(_ diagnosis: Diagnosis) -> String {
        let environment = diagnosis.capabilities.environment
        let rows = [
            ("distribution", distribution), ("C library", library),
            ("kernel", "Linux \(environment.kernel) \(environment.architecture)"), ("processors", "\(processors)"),
            ("Swift", Self.swift),
        ]
        let table = rows.map { "| \($0.0) | \(MarkdownText.prose($0.1)) |\n" }.joined()
        let text = diagnosis.text(for: Terminal(width: nil))
        return "| system | |\n| --- | --- |\n\(table)\n```text\n\(text)```\n"
    }
}

struct Diagnosis: Encodable, Equatable {
    enum Source: String, Encodable {
        /// The tool tried them itself.
        case tool
        /// The process's monitor tried them.
        case monitor
        /// The tool read the environment in /proc, and tried nothing.
        case outside
    }

    var capabilities: Capabilities
    var source: Source
    var process: InspectedProcess?
    var cost: MonitorCost?
    var proof: MonitorProof?
}

extension Diagnosis {
    private static let indentation = "    "

    func text(for terminal: Terminal) -> String {
        var lines = [terminal.style(title, .bold)]
        if let process { lines += about(process) }
        lines.append(Self.rules(capabilities.environment))
        if let cost { lines.append(Self.text(cost)) }
        if capabilities.environment.isProcForeign == true { lines.append(Capabilities.Environment.foreignProc + ".") }
        let works = capabilities.features.filter { $0.state == .works }
        if !works.isEmpty {
            lines += ["", terminal.style("Works", .green) + ": " + works.map(Self.name).joined(separator: ", ")]
        }
        for feature in capabilities.missing {
            lines += [""] + missing(feature, terminal)
        }
        lines += notTried(capabilities.features.filter { $0.state == .notTried })
        lines += ["", conclusion]
        if let proof { lines += [""] + text(proof, terminal) }
        return lines.map { Self.wrapped($0, to: terminal) }.joined(separator: "\n") + "\n"
    }

    private static func wrapped(_ line: String, to terminal: Terminal) -> String {
        let isDetail = line.hasPrefix(indentation)
        // Codes of colors would count as columns; only the first words of such a line have any.
        return line.wrapped(to: terminal.width, indentation: isDetail ? indentation + "      " : "  ")
    }

    private var title: String {
        let pid = process?.pid ?? capabilities.environment.pid
        let version = "StallWatch \(capabilities.version.printable)"
        return switch source {
        case .tool: "\(version), in a program that is started like this tool"
        case .monitor: "\(version), as the monitor in process \(pid) finds it"
        case .outside: "Process \(pid), seen from outside"
        }
    }

    private func about(_ process: InspectedProcess) -> [String] {
        [
            process.executable.map { "Executable: \($0.printable)" },
            process.reportDirectory.map { "Reports: \($0.printable)" },
            process.isMonitored && source == .outside
                ? "Monitor: running, without a control socket: set control = .socket(directory:) in its configuration"
                : nil,
        ].compactMap(\.self)
    }

    private static func rules(_ environment: Capabilities.Environment) -> String {
        var rules = ["Linux \(environment.kernel.printable) \(environment.architecture.printable)"]
        if let user = environment.userID { rules.append("user \(user)") }
        let modes = [0: "no seccomp", 1: "strict seccomp", 2: "a seccomp filter"]
        rules.append(environment.seccompMode.flatMap { modes[$0] } ?? "seccomp unknown")
        rules.append(environment.yamaScope.map { "Yama \($0)" } ?? "no Yama")
        rules.append(environment.securityLabel.map { "confined by \($0.printable)" } ?? "no security label")
        if let isDumpable = environment.isDumpable { rules.append(isDumpable ? "dumpable" : "not dumpable") }
        if environment.hasNoNewPrivileges == true { rules.append("no new privileges") }
        if let paranoid = environment.perfEventParanoid { rules.append("perf_event_paranoid \(paranoid)") }
        if let tracer = environment.tracer { rules.append("traced by process \(tracer)") }
        return "System: " + rules.joined(separator: ", ")
    }

    private static func text(_ cost: MonitorCost) -> String {
        func hourly(_ number: Double, _ text: (Double) -> String) -> String {
            // The first second says nothing about an hour.
            text(number) + (cost.seconds < 1 ? "" : " (\(text(number / cost.seconds * 3_600)) an hour)")
        }
        let process = "\((cost.processCPUSeconds * 1_000).duration) of the process since its start"
        let wakeUps = hourly(Double(cost.wakeUps)) { "\($0.whole)" }
        return "Cost in \((cost.seconds * 1_000).duration): \(hourly(cost.cpuSeconds * 1_000, \.duration)) of CPU, of "
            + "\(process); \(wakeUps) wake-ups; \(hourly(Double(cost.holds)) { "\($0.whole)" }) holds of a thread, "
            + "\(hourly(cost.heldMicroseconds / 1_000, \.duration)) in all, the longest "
            + "\((cost.longestHoldMicroseconds / 1_000).duration); now \(counted(cost.threads, "thread", "threads")) and "
            + "\(counted(cost.openFiles, "open file", "open files")) of threads in /proc"
    }

    private func text(_ proof: MonitorProof, _ terminal: Terminal) -> [String] {
        let verdict = proof.isWhole ? terminal.style("Proved", .green) : terminal.style("Not proved", .red)
        let found = proof.trials.map(\.summary) + proof.faults
        return ["\(verdict) by stalls of the monitor's own, with \(proof.cpuMilliseconds.duration) of CPU:"]
            + found.map { Self.indentation + $0.printable }
    }

    private func missing(_ feature: Capabilities.Feature, _ terminal: Terminal) -> [String] {
        let word = feature.isOptional ? terminal.style("Missing, optional", .yellow) : terminal.style("Missing", .red)
        var lines = ["\(word): \(Self.name(feature))"]
        if let loss = feature.loss { lines.append(Self.indentation + "lost: \(loss.printable)") }
        for remedy in feature.remedies { lines.append(Self.indentation + "set:  \(remedy.printable)") }
        return lines
    }

    private func notTried(_ features: [Capabilities.Feature]) -> [String] {
        var reasons = Numbered<String>()
        for feature in features { _ = reasons.number(of: feature.detail ?? "") }
        return reasons.values.flatMap { reason in
            let names = features.filter { ($0.detail ?? "") == reason }.map(\.name.title.printable)
            return ["", "Not tried (\(reason.printable)): " + names.joined(separator: ", ")]
        }
    }

    private static func name(_ feature: Capabilities.Feature) -> String {
        feature.name.title.printable + (feature.detail.map { " (\($0.printable))" } ?? "")
    }

    private var conclusion: String {
        if source == .outside { return "A process shows little of this to others." }
        if capabilities.missing.isEmpty { return "Reports lack nothing here." }
        return capabilities.isDegraded
            ? "Reports lack something here: see the lines above." : "Reports are whole here; they lack some additions."
    }
}
