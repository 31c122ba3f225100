import Foundation
import Glibc
import StallReports
import TestSupport
import Testing

/// The live screen in a real terminal, which tmux emulates.
@Suite(.needs("tmux")) struct WatchTests {
    private let directory = TemporaryDirectory.ofTest()

    private final class Screen {
        private let socket: String
        private var server: pid_t?

        /// Runs a command line of the shell, in which `$TOOL` is the tool.
        init(_ line: String, in directory: TemporaryDirectory) throws {
            socket = directory.path("tmux")
            let tool = try Command.product("stallwatch")
            let arguments = [
                "-S", socket, "-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-e",
                "TOOL=\(tool)", "/bin/bash", "-c", "\(line); exec sleep 60",
            ]
            // The server that tmux leaves behind must not keep the descriptor by which Foundation sees the end of its child.
            try Command(
                program: "/bin/bash",
                arguments: ["-c", "exec tmux \"$@\" </dev/null >/dev/null 2>&1", "tmux"] + arguments
            ).withThreeDescriptors.succeed()
            server = pid_t(
                try tmux(["display-message", "-p", "#{pid}"]).trimmingCharacters(in: .whitespacesAndNewlines))
        }

        deinit {
            // The socket may be gone with its directory.
            if let server { kill(server, SIGKILL) }
        }

        @discardableResult
        func tmux(_ arguments: [String]) throws -> String {
            let result = try Command(program: "/usr/bin/env", arguments: ["tmux", "-S", socket] + arguments).run()
            #expect(result.status == 0, "\(result.text)")
            return result.text
        }

        var text: String { (try? tmux(["capture-pane", "-p"])) ?? "" }

        func shows(_ text: String) -> Bool { eventually(every: 100) { self.text.contains(text) } }
    }

    @Test func `the screen shows the loops and the stalls`() throws {
        let host = try TestHost.control("busy", in: directory)
        let screen = try Screen("$TOOL watch \(host.pid) --interval 200ms", in: directory)
        #expect(screen.shows("saveTheNotes()"), "\(screen.text)")
        #expect(screen.shows("Slept for"), "\(screen.text)")
        let text = screen.text
        #expect(text.contains("stallwatch-test-host (\(host.pid))") && text.contains("q: quit"))
        #expect(text.contains("busy, last 60 s") && text.contains("tasks"))
        print("watch:\n\(text)")
        // Keys: the help, another order, and the latest stall of the group, whose report is in no folder named stalls.
        try screen.tmux(["send-keys", "?"])
        #expect(screen.shows("sort by newest, longest or count"), "\(screen.text)")
        try screen.tmux(["send-keys", "Escape"])
        #expect(screen.shows("stalls, by newest"), "\(screen.text)")
        try screen.tmux(["send-keys", "s"])
        #expect(screen.shows("stalls, by longest"), "\(screen.text)")
        try screen.tmux(["send-keys", "Enter"])
        #expect(screen.shows("began 20"), "\(screen.text)")
        try screen.tmux(["send-keys", "Enter"])
        #expect(screen.shows("stalls, by longest"), "\(screen.text)")
        // A narrower terminal is drawn on anew.
        try screen.tmux(["resize-window", "-x", "50", "-y", "12"])
        #expect(eventually(every: 100) { screen.text.split(separator: "\n").allSatisfy { $0.count <= 50 } })
        // With ten stalls and more there are fewer columns for the function.
        #expect(screen.shows("saveThe"), "\(screen.text)")
    }

    @Test(arguments: ["q", "C-c"]) func `the terminal is as before at the end`(key: String) throws {
        let host = try TestHost.control("wait", in: directory)
        let line = "stty -a > '\(directory.path("before"))'; echo BEFORE; $TOOL watch \(host.pid); echo STATUS $?; "
        let screen = try Screen(line + "stty -a > '\(directory.path("after"))'", in: directory)
        #expect(screen.shows("stalls, by newest"), "\(screen.text)")
        #expect(!screen.text.contains("BEFORE"))
        try screen.tmux(["send-keys", key])
        #expect(screen.shows("STATUS 0"), "\(screen.text)")
        #expect(screen.text.contains("BEFORE") && !screen.text.contains("stalls, by newest"), "\(screen.text)")
        let settings = ["before", "after"].map { directory.path($0) }
        #expect(eventually { (try? String(contentsOfFile: settings[1], encoding: .utf8))?.isEmpty == false })
        #expect(
            try String(contentsOfFile: settings[0], encoding: .utf8)
                == String(contentsOfFile: settings[1], encoding: .utf8))
        #expect(try screen.tmux(["display-message", "-p", "#{cursor_flag}#{alternate_on}"]).contains("10"))
    }

    @Test func `a process that ends is one sentence`() throws {
        let host = try TestHost.control("wait", in: directory)
        let screen = try Screen("$TOOL watch \(host.pid); echo STATUS $?", in: directory)
        #expect(screen.shows("stalls, by newest"), "\(screen.text)")
        host.process.kill()
        #expect(screen.shows("STATUS 1"), "\(screen.text)")
        #expect(screen.text.contains("Error: Process \(host.pid) has ended."), "\(screen.text)")
    }

    @Test func `lines are written where there is no terminal`() throws {
        let host = try TestHost.control("busy", in: directory)
        let refused = try Tool.shell("$TOOL watch \(host.pid) < /dev/null | cat; exit ${PIPESTATUS[0]}")
        #expect(refused.status == 2 && refused.text.contains("use --once or --json"), "\(refused.text)")
        let once = try Tool.run(["watch", "\(host.pid)", "--once"])
        #expect(once.contains("main ") && once.contains(" %") && !once.contains("\u{1b}"), "\(once)")
        let lines = try Tool.shell("$TOOL watch \(host.pid) --json --interval 100ms | head -n 3")
        #expect(lines.status == 0)
        let busy = try lines.text.split(separator: "\n").map { try Tool.decode(Line.self, String($0)) }
            .compactMap { line in line.loops.first { $0.label == "main" }?.busy }
        #expect(busy.count == 3 && busy.allSatisfy { (0...1).contains($0) }, "\(lines.text)")
        // Beside other programs the loop may get no CPU in an interval.
        #expect(busy.contains { $0 > 0.01 }, "\(lines.text)")
        let gone = try Tool.shell("$TOOL watch 2147483647 --json")
        #expect(gone.status == 1 && gone.text.contains("There is no process 2147483647."), "\(gone.text)")
    }

    private struct Line: Decodable {
        struct Loop: Decodable {
            let label: String
            let busy: Double?
        }
        let loops: [Loop]
    }
}
