import ArgumentParser
import CStalls
import Foundation
import Glibc
import LinuxSupport
import StallWatch

/// A child process, with a pipe to its standard input and one from its standard output.
struct ChildProcess: Sendable {
    let id: pid_t
    private let input: Int32
    private let output: Int32

    /// The path of this program's file: a program that is started by the link in /proc has the name `exe`.
    static let program = readLink("/proc/self/exe") ?? CommandLine.arguments[0]

    /// Starts `executable`, by default this program.
    init(_ arguments: [String], executable: String = program) throws(ScenariosFailure) {
        let (inputRead, inputWrite) = try Self.makePipe()
        let (outputRead, outputWrite) = try Self.makePipe()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, inputRead, STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, outputWrite, STDOUT_FILENO)
        var strings = ([executable] + arguments).map { strdup($0) } + [nil]
        var environment = ProcessInfo.processInfo.environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for string in strings + environment { free(string) } }
        var id: pid_t = 0
        let status = posix_spawn(&id, executable, &actions, nil, &strings, &environment)
        close(inputRead)
        close(outputWrite)
        guard status == 0 else {
            close(inputWrite)
            close(outputRead)
            throw ScenariosFailure(
                .systemError, "\(executable) cannot be started: \(String(cString: strerror(status)))")
        }
        self.id = id
        input = inputWrite
        output = outputRead
    }

    /// Starts a program of that shape, which writes its reports to `directory`; its stalls take as long as `stall`.
    init(
        _ shape: HostShape, threshold: Duration, directory: String, stall: Duration = .zero,
        executable: String = program
    ) throws(ScenariosFailure) {
        try self.init(
            [
                "--host", shape.rawValue, "--threshold", "\(Int(threshold.milliseconds.rounded()))ms",
                "--output", directory, "--host-stall", "\(Int(stall.milliseconds.rounded()))",
            ], executable: executable)
    }

    func send(_ text: String) {
        _ = text.utf8.withContiguousStorageIfAvailable { write(input, $0.baseAddress, $0.count) }
    }

    /// Waits until a monitor's watchdog runs in the child, for `limit` at most: on a slow machine a start takes seconds.
    func waitForMonitor(within limit: Duration) async {
        let end = ContinuousClock.now + limit
        while ContinuousClock.now < end, !RunningProcess.hasThread(named: Capabilities.watchdogThread, in: id) {
            await pause(.milliseconds(5))
        }
    }

    /// Closes the child's standard input and waits for its end, or kills it after `limit`; output: a pipe's capacity.
    func finish(within limit: Duration) async -> Ending {
        close(input)
        let end = ContinuousClock.now + limit
        var status: Int32 = 0
        while waitpid(id, &status, WNOHANG) == 0 {
            if ContinuousClock.now >= end { kill(id, SIGKILL) }
            await pause(.milliseconds(5))
        }
        defer { close(output) }
        // A process that the child has left behind may keep the pipe open.
        _ = fcntl(output, F_SETFL, O_NONBLOCK)
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        while case let count = read(output, &buffer, buffer.count), count > 0 { text += buffer.prefix(count) }
        return Ending(status: status, text: String(decoding: text, as: UTF8.self))
    }

    struct Ending: Sendable, CustomStringConvertible {
        let status: Int32
        let text: String

        var answer: String? { status == 0 ? text : nil }

        func result() throws -> HostResult? {
            try answer.map { try JSONDecoder().decode(HostResult.self, from: Data($0.utf8)) }
        }

        /// The signal that ended it, or 0; the next byte of the status is the exit status (wait(2)).
        var signal: Int32 { status & 0x7f }

        var description: String {
            let how = signal == 0 ? "ended with status \(status >> 8 & 0xff)" : "was ended by signal \(signal)"
            return "\(how) and wrote '\(text.prefix(200))'"
        }
    }

    /// Returns a pipe that no other child inherits.
    private static func makePipe() throws(ScenariosFailure) -> (read: Int32, write: Int32) {
        var ends: [Int32] = [-1, -1]
        guard stalls_make_pipe(&ends) else {
            throw ScenariosFailure(.systemError, "no pipe can be made: \(String(cString: strerror(errno)))")
        }
        return (ends[0], ends[1])
    }
}

extension ScenarioContext {
    /// Runs a program of that shape as a child beside `body`, and takes its reports; returns its stalls' durations.
    func host(
        _ shape: HostShape, while body: (ChildProcess) async -> Void = { _ in }
    ) async throws -> [Duration] {
        let child = try ChildProcess(shape, threshold: threshold, directory: directory, stall: stall)
        await body(child)
        let ending = await child.finish(within: .seconds(30) + threshold * 12)
        guard let result = try? ending.result() else {
            throw NoResult(sentence: "the child of shape \(shape.rawValue) \(ending)")
        }
        take(result)
        return result.injectedMilliseconds.map { .microseconds(Int(($0 * 1000).rounded())) }
    }
}

/// The child of a scenario crashed, failed or did not end in time.
struct NoResult: Error {
    let sentence: String
}

/// The child's result, which is one line of JSON on its standard output.
struct HostResult: Codable, Sendable {
    var injectedMilliseconds: [Double]
    var files: [String]
    var suppressed: SuppressionCounts
}

/// The shape of the program's child: `stallwatch-scenarios --host SHAPE`.
enum HostShape: String, CaseIterable, ExpressibleByArgument, Sendable {
    /// An async `@main`. The main actor moves from the main thread to workers of libdispatch.
    case asyncMain = "async-main"
    /// An async `@main` that stalls on the main thread before it suspends for the first time.
    case asyncMainAtOnce = "async-main-at-once"
    /// An async `@main` with a timer of the main run loop, which no thread runs.
    case asyncMainTimer = "async-main-timer"
    /// The same with a timer of the main queue.
    case asyncMainQueueTimer = "async-main-queue-timer"
    case dispatchMain = "dispatch-main"
    case runForever = "run-forever"
    case runBefore = "run-before"
    /// `RunLoop.main.run()`, and the main actor waits for a process of its own in a nested run.
    case nestedRun = "nested-run"
    /// The same in a timer, whose nested run serves the main queue.
    case nestedRunInTimer = "nested-run-in-timer"
    /// A main run loop that turns a thousand times a second until standard input ends.
    case busy
    /// A main run loop and fifty others that wait until standard input ends.
    case waiting
    /// The same, and the task pool is looked at.
    case waitingWithPool = "waiting-with-pool"
    /// The same loops, and the fifty turn a hundred times a second.
    case turning
    /// Four event loops and ten queues without work, until standard input ends. Each byte of it makes one of them stall.
    case resting
}
