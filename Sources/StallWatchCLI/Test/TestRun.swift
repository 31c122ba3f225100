import Glibc
import LinuxSupport
import Synchronization

final class TestRun: Sendable {
    /// In nanoseconds: a process that the command leaves behind may keep the pipe open.
    private static let longestRest: UInt64 = 2_000_000_000

    struct Progress {
        var clock: HangClock
        var tests = TestProgress()
    }

    let id: pid_t
    private let progress: Mutex<Progress>
    private let ended = Semaphore()
    private let status = Mutex<Int32?>(nil)
    private let outputsEnded = Semaphore()

    /// `limit` is the time without progress that is a hang, in nanoseconds.
    ///
    /// - Throws: ``CommandFailure`` if the program cannot be started, or the system has no pipe or thread.
    init(_ command: [String], environment: [String: String], limit: UInt64) throws {
        let (outRead, outWrite) = try Self.makePipe()
        let (errorRead, errorWrite) = try Self.makePipe()
        defer { for descriptor in [outWrite, errorWrite] { close(descriptor) } }
        do {
            id = try Self.spawn(command, environment, output: outWrite, error: errorWrite)
        } catch {
            for descriptor in [outRead, errorRead] { close(descriptor) }
            throw error
        }
        progress = Mutex(Progress(clock: HangClock(limit: limit, now: monotonicNow())))
        Interruption.forward(to: id)
        do throws(SystemError) {
            try WorkerThread(name: "stallwatch-out") { [self] in forward(outRead, to: STDOUT_FILENO) }.detach()
            try WorkerThread(name: "stallwatch-err") { [self] in forward(errorRead, to: STDERR_FILENO) }.detach()
            try WorkerThread(name: "stallwatch-wait") { [self] in waitForEnd() }.detach()
        } catch {
            kill(id, SIGKILL)
            throw CommandFailure(.systemError, error.description)
        }
    }

    var current: Progress { progress.withLock { $0 } }

    /// Waits for the command's exit status, 128 and the number if a signal ended it; returns `nil` at a hang.
    func waitForEndOrHang() -> Int32? {
        while true {
            let due = progress.withLock { $0.clock.nextDecision(after: monotonicNow()) }
            if ended.wait(until: due) {
                // Without the rest that a reader, such as a pager, has not taken yet, the result would be missing.
                var deadline = monotonicNow() &+ Self.longestRest
                for _ in 0..<2 {
                    while !outputsEnded.wait(until: deadline), current.clock.isHeld {
                        // Signals end the tool now: the command has ended.
                        Interruption.forward(to: nil)
                        deadline = monotonicNow() &+ Self.longestRest
                    }
                }
                return status.withLock { $0 } ?? EXIT_FAILURE
            }
            if progress.withLock({ $0.clock.isDue(at: monotonicNow()) }) { return nil }
        }
    }

    /// Ends the command and all that it has started: asks them first, and kills those that are left.
    func end() {
        let all = RunningProcess.all()
        let processes = RunningProcess.descendants(of: id, among: all) + all.filter { $0.id == id }
        for process in processes { kill(process.id, SIGTERM) }
        ended.wait(until: monotonicNow() &+ Self.longestRest)
        // Another process may have an id by now.
        for process in processes where RunningProcess(id: process.id)?.startTicks == process.startTicks {
            kill(process.id, SIGKILL)
        }
    }

    /// Begins another time without progress, because this one was no hang.
    func goOn() { progress.withLock { $0.clock.markProgress(at: monotonicNow()) } }

    private func waitForEnd() {
        var raw: Int32 = 0
        while waitpid(id, &raw, 0) < 0, errno == EINTR {}
        let signal = raw & 0x7f
        status.withLock { $0 = signal == 0 ? (raw >> 8) & 0xff : 128 + signal }
        ended.post()
    }

    private func forward(_ from: Int32, to: Int32) {
        defer {
            close(from)
            outputsEnded.post()
        }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var line: [UInt8] = []
        while true {
            let count = read(from, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            progress.withLock { $0.clock.hold() }
            // If the reader is gone, the tests go on.
            _ = writeAll(Array(buffer[..<count]), to: to, waitingForReader: true)
            let time = monotonicNow()
            var lines: [String] = []
            for byte in buffer[..<count] {
                if byte == UInt8(ascii: "\n") {
                    lines.append(String(decoding: line, as: UTF8.self))
                    line.removeAll(keepingCapacity: true)
                } else if line.count < Self.longestLine {
                    line.append(byte)
                }
            }
            progress.withLock { progress in
                progress.clock.release()
                progress.clock.markProgress(at: time)
                for line in lines { progress.tests.read(line, at: time) }
            }
        }
    }

    private static let longestLine = 4_096

    private static func makePipe() throws(CommandFailure) -> (read: Int32, write: Int32) {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else {
            throw CommandFailure(.systemError, "the system has no pipe: \(String(cString: strerror(errno)))")
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    private static func spawn(
        _ command: [String], _ environment: [String: String], output: Int32, error: Int32
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, error, STDERR_FILENO)
        // The tool blocks the signals that it forwards, and ignores SIGPIPE; the command must not inherit that.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t(), pipe = sigset_t()
        sigemptyset(&none)
        sigemptyset(&pipe)
        sigaddset(&pipe, SIGPIPE)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &pipe)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var variables = ProcessEnvironment.current()
        for (name, value) in environment { variables.set(name, value) }
        var arguments = command.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var id: pid_t = 0
        let status = variables.withCStrings { entries in
            posix_spawnp(&id, command[0], &actions, &attributes, &arguments, &entries)
        }
        guard status == 0 else { throw CommandFailure(starting: command[0], errno: status) }
        return id
    }
}

/// By the lines of Swift Testing and of XCTest; lines of other tools are progress without names.
struct TestProgress: Equatable {
    struct Running: Equatable {
        var name: String
        var began: UInt64
    }

    private(set) var running: [Running] = []
    private(set) var hasBegun = false

    mutating func read(_ line: some StringProtocol, at time: UInt64) {
        if Self.endsAll(line) { running.removeAll() }
        guard let (name, isBegin) = Self.event(line) else { return }
        if isBegin {
            hasBegun = true
            running.append(Running(name: name, began: time))
        } else if let index = running.firstIndex(where: { $0.name == name }) {
            running.remove(at: index)
        }
    }

    /// Whether no earlier test runs: another test process begins, or one has crashed, whose tests have no last line.
    private static func endsAll(_ line: some StringProtocol) -> Bool {
        line.hasSuffix(" Test run started.") || line.hasPrefix("Test Suite 'All tests' started")
            || line.hasPrefix("Test Suite 'Selected tests' started")
            || line.hasPrefix("error: ") && line.contains("xited with unexpected signal code")
    }

    private static func event(_ line: some StringProtocol) -> (name: String, isBegin: Bool)? {
        // Swift Testing begins a line with a symbol, in color if it writes to a terminal.
        guard let start = line.firstRange(of: "Test ") else { return nil }
        if line[..<start.lowerBound].contains(where: { $0.isASCII && $0.isLetter && $0 != "m" }) { return nil }
        let text = line[start.upperBound...]
        if text.hasPrefix("Case '") {
            // XCTest: Test Case 'Suite.test' started at …, or passed, failed, skipped (1.0 seconds).
            let rest = text.dropFirst("Case '".count)
            guard let end = rest.lastIndex(of: "'") else { return nil }
            return (String(rest[..<end]), rest[end...].hasPrefix("' started"))
        }
        guard !text.hasPrefix("run "), !text.hasPrefix("case "), !text.hasPrefix("Suite ") else { return nil }
        if text.hasSuffix(" started.") { return (String(text.dropLast(" started.".count)), true) }
        for word in [" passed after ", " failed after ", " was cancelled after ", " skipped"] {
            if let range = text.ranges(of: word).last { return (name(String(text[..<range.lowerBound])), false) }
        }
        return nil
    }

    /// The name without the count of its arguments: `name` in "name with 3 test cases".
    private static func name(_ text: String) -> String {
        guard let range = text.ranges(of: " with ").last, text[range.upperBound...].contains("test case") else {
            return text
        }
        return String(text[..<range.lowerBound])
    }
}

/// Decides when a run without progress counts as a hang: once in each time without progress.
struct HangClock {
    let limit: UInt64
    private(set) var lastProgress: UInt64
    private var isReported = false
    /// How many writes wait for the reader of the output: while one does, the tests are not to blame.
    private var writes = 0

    init(limit: UInt64, now: UInt64) {
        self.limit = limit
        lastProgress = now
    }

    var isHeld: Bool { writes > 0 }

    mutating func hold() { writes += 1 }

    mutating func release() { writes -= 1 }

    mutating func markProgress(at time: UInt64) {
        lastProgress = time
        isReported = false
    }

    /// When to decide next, in monotonic nanoseconds; after a report, a limit away.
    func nextDecision(after now: UInt64) -> UInt64 {
        isReported || isHeld ? now &+ limit : max(lastProgress &+ limit, now)
    }

    mutating func isDue(at now: UInt64) -> Bool {
        guard !isReported, !isHeld, now &- min(lastProgress, now) >= limit else { return false }
        isReported = true
        return true
    }
}
