import ArgumentParser
import Glibc
import LinuxSupport

struct TestCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test",
        abstract: "Run tests, and say what hangs when they make no progress.",
        usage: "stallwatch test [<options>] <command> ...",
        discussion: """
            The tests need no change. When the command has printed nothing for the time in --after, the tool prints the tests \
            that have not finished, what each thread waits for, who holds the locks, and the child processes, and writes a \
            report with all stacks. Then the tests go on, or end with --fail. A build that prints nothing, before or after tests, \
            is no hang.

            The tool loads a small library (LD_PRELOAD), which does nothing but in the test processes that the package manager \
            builds; only a request loads the monitor. Static executables cannot be asked: of these it prints what the \
            kernel shows. The output goes through pipes, so the command does not see a terminal.

            --pool 1 lets one task of each priority run at a time, as on a machine with one processor, where a task that blocks \
            keeps the whole pool. --pool 1..4 repeats the command with each number of threads. Only test processes get another \
            pool, and not those with a static Swift runtime, which say so.

            Exit status: the command's; 128 and the signal's number if one ended it; 124 after --fail ended it; 126 or 127 \
            if it cannot be executed or is not found.

            Examples:
              stallwatch test swift test
              stallwatch test --after 2m --fail --output ci/hangs swift test --parallel
              stallwatch test --pool 1 swift test --skip-build
            """
    )

    /// The exit status after `--fail`, as of timeout(1).
    private static let hung: Int32 = 124

    @Option(
        help: ArgumentHelp("The time without output that is a hang, at least 1s.", valueName: "duration"),
        transform: DurationArgument.init(parsing:))
    var after = DurationArgument(milliseconds: 30_000)

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("The directory for the reports of hangs; created for the first one.", valueName: "path"))
    var output = "hangs"

    @Flag(help: "End the tests at the first hang, with status \(hung).")
    var fail = false

    @Option(
        help: ArgumentHelp(
            "The number of threads that run tasks of one priority, or a range such as 1..4: 1 to 64.",
            valueName: "number"),
        transform: PoolWidths.init(parsing:))
    var pool: PoolWidths?

    @Argument(
        parsing: .captureForPassthrough,
        help: ArgumentHelp("The command, after the options, such as swift test.", valueName: "command"))
    var words: [String] = []

    func validate() throws {
        if try ProgramWords.program(of: words).isEmpty {
            throw ValidationError("There is no command. Give it after the options, such as swift test.")
        }
        guard (1_000...604_800_000).contains(after.milliseconds) else {
            throw ValidationError("--after is \(after): give 1s to 7d.")
        }
        if output.isEmpty { throw ValidationError("The value '' of --output is empty: name a directory.") }
    }

    func run() throws {
        let requests = try RequestDirectory()
        defer { requests.remove() }
        var environment = try PreloadedLibraries.environment(agent: "STALLWATCH_HANG_LIBRARY")
        environment["STALLWATCH_HANG_REQUESTS"] = requests.path
        var hangs = 0
        guard let pool else {
            let status = try run(environment, requests, &hangs)
            guard status == 0 else { throw ExitCode(status) }
            return
        }
        var failure: Int32 = 0
        for width in pool.range {
            environment["STALLWATCH_POOL"] = "\(width)"
            if pool.range.count > 1 {
                StandardError.write("stallwatch: a task pool of \(width) thread\(width == 1 ? "" : "s")\n")
            }
            let status = try run(environment, requests, &hangs)
            if failure == 0 { failure = status }
            // A signal ends the command, and so the rest.
            if status > 128 { break }
        }
        guard failure == 0 else { throw ExitCode(failure) }
    }

    /// Runs the command once, and returns its status; counts the hangs.
    private func run(
        _ environment: [String: String], _ requests: RequestDirectory, _ hangs: inout Int
    ) throws -> Int32 {
        let run = try TestRun(
            ProgramWords.program(of: words), environment: environment, limit: UInt64(after.milliseconds * 1_000_000))
        let reporter = HangReporter(requests: requests.path)
        while true {
            if let status = run.waitForEndOrHang() { return status }
            let directory = try ReportOutput(output).path + "/hang-\(hangs + 1)-\(getpid())"
            guard let text = reporter.text(of: run.id, run.current, into: directory, at: monotonicNow()) else {
                run.goOn()
                continue
            }
            hangs += 1
            StandardError.write(text)
            guard fail else { continue }
            run.end()
            StandardError.write("stallwatch: the tests were ended: --fail\n")
            throw ExitCode(Self.hung)
        }
    }
}

/// The numbers of threads of the task pool with which the command runs, one after the other.
struct PoolWidths: Equatable {
    /// CPRELOAD_MAXIMUM_POOL (CPreload.h).
    static let all = 1...64

    let range: ClosedRange<Int>

    init(parsing text: String) throws {
        let ends = text.split(separator: "..", omittingEmptySubsequences: false).map { Int($0) }
        guard ends.count <= 2, let first = ends[0], let last = ends[ends.count - 1], first <= last,
            Self.all.contains(first), Self.all.contains(last)
        else {
            throw ValidationError("'\(text)' is no number of threads: give one from 1 to 64, or a range such as 1..4.")
        }
        range = first...last
    }
}

struct RequestDirectory {
    let path: String

    init(in parent: String = environmentPath("TMPDIR") ?? "/tmp") throws(CommandFailure) {
        var template = pathBytes("\(parent)/stallwatch-XXXXXX")
        guard mkdtemp(&template) != nil else { throw CommandFailure(writing: parent, errno: errno) }
        path = pathText(cString: template)
    }

    func remove() {
        for entry in directoryEntries(path) ?? [] { unlink(pathBytes("\(path)/\(entry.name)")) }
        rmdir(pathBytes(path))
    }
}

/// The libraries that `test` and `run` preload, which are beside the tool or in the lib directory beside its own.
enum PreloadedLibraries {
    static let names = (preload: "libStallWatchPreload.so", agent: "libStallWatchAgent.so")

    static func environment(agent variable: String) throws(CommandFailure) -> [String: String] {
        let directory = try directory()
        return ["LD_PRELOAD": try preloaded(in: directory), variable: "\(directory)/\(names.agent)"]
    }

    /// The value of LD_PRELOAD, in which other libraries stay.
    private static func preloaded(in directory: String) throws(CommandFailure) -> String {
        guard !directory.contains(where: { $0 == ":" || $0.isWhitespace }) else {
            throw CommandFailure(
                .nothing,
                "\(names.preload) is in \(directory), and LD_PRELOAD cannot name a path with a space or a colon: "
                    + "install the tool in another directory")
        }
        let before = environmentPath("LD_PRELOAD").map { ":" + $0 } ?? ""
        return "\(directory)/\(names.preload)\(before)"
    }

    private static func directory() throws(CommandFailure) -> String {
        let own = readLink("/proc/self/exe").map(directoryName) ?? ""
        let directories = [own, own + "/../lib"]
        guard let directory = directories.first(where: { access("\($0)/\(names.preload)", R_OK) == 0 }),
            access("\(directory)/\(names.agent)", R_OK) == 0
        else {
            throw CommandFailure(
                .nothing,
                "\(names.preload) and \(names.agent) are not in \(own): build them beside the tool, "
                    + "with swift build --product StallWatchPreload and --product StallWatchAgent, or run make install-cli"
            )
        }
        return directory
    }
}
