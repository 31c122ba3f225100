import Foundation
import Glibc
import LinuxSupport
import Testing
import TestSupport

@testable import StallReports

// What a program keeps that `stallwatch run` starts.

extension RunTests {
    /// The process that `run` starts and its child are process 1, each in a PID namespace of its own.
    @Test func `a child with its parent's process id ends at once`() throws {
        guard let container = try Command.container() else { return notRun("namespaces are refused") }
        let program = try compile(
            "sandbox",
            """
            int unshare(int); int waitpid(int, int *, int); void exit(int); long time(long *);
            int status = 0; long begun = time(0);
            if (unshare(0x20000000) != 0) return 77;
            if (fork() == 0) exit(getpid() == 1 ? 3 : 4);
            waitpid(-1, &status, 0);
            return time(0) - begun > 3 ? 5 : status >> 8;
            """)
        let output = try Command(
            program: "/usr/bin/env", arguments: container + [try Command.product("stallwatch"), "run", "--", program],
            directory: directory.path
        ).run()
        #expect(output.status == 3, "\(output.text)")
    }

    /// faketime(1) may make it stand.
    @Test func `a monotonic clock that stands costs no CPU time`() throws {
        let source = try directory.write(
            "clock.c",
            """
            #define _GNU_SOURCE
            #include <sys/syscall.h>
            #include <time.h>
            #include <unistd.h>
            int clock_gettime(clockid_t clock, struct timespec *time) {
              static struct timespec first;
              if (clock != CLOCK_MONOTONIC) return (int)syscall(SYS_clock_gettime, clock, time);
              if (first.tv_sec == 0) syscall(SYS_clock_gettime, clock, &first);
              *time = first;
              return 0;
            }
            """)
        let library = directory.path("libclock.so")
        let clang = try #require(Command.find("clang"))
        try Command(program: clang, arguments: ["-shared", "-fPIC", source, "-o", library]).succeed()
        let program = try compile("waits", "long clock(void); usleep(1500000); return clock() > 400000 ? 9 : 3;")
        let output = try Command(
            program: try Command.product("stallwatch"), arguments: ["run", "--", program],
            environment: ["LD_PRELOAD": library], directory: directory.path
        ).run()
        #expect(output.status == 3, "\(output.text)")
    }

    /// Foundation, which comes with the monitor, initializes libdispatch anew, for the thread that loads it.
    @Test func `a program without Foundation keeps its main queue`() throws {
        let source = try directory.write(
            "queue.swift",
            """
            import Dispatch
            import Glibc
            @inline(never) func waitOnTheMainQueue() { usleep(400_000) }
            DispatchQueue.main.asyncAfter(deadline: .now() + 1) { waitOnTheMainQueue() }
            DispatchQueue.main.asyncAfter(deadline: .now() + 2) { exit(7) }
            dispatchMain()
            """)
        let program = directory.path("queue")
        try Command(
            program: try #require(Command.find("swiftc")),
            arguments: ["-Onone", "-swift-version", "6", source, "-o", program]
        ).succeed()
        for _ in 0..<4 {
            let output = try run([program])
            #expect(output.status == 7, "\(output.text)")
        }
    }

    /// `stty tostop` stops a background program that writes.
    @Test func `a line for a terminal stops no background program`() throws {
        guard let script = Command.find("script"), Command.find("stty") != nil else {
            return notRun("script or stty is not installed")
        }
        let program = try compile("becomes-daemon", "return daemon(1, 1);")
        let words = "'\(try Command.product("stallwatch"))' run --output '\(reports)' -- '\(program)'"
        // A stopped job keeps the shell waiting no longer: its status has the signal's number then.
        let shell = "stty tostop; set -m; \(words) & wait $!; echo $? >'\(directory.path("status"))'"
        let file = try directory.write("shell", shell)
        try Command(
            program: script, arguments: ["-qec", "bash '\(file)'", "/dev/null"], directory: directory.path
        ).succeed()
        #expect(try String(contentsOfFile: directory.path("status"), encoding: .utf8) == "0\n")
    }

    /// It would end by SIGPIPE, and lose what its stdio has not written yet.
    @Test func `a program does not end because its standard error is closed`() throws {
        let program = try compile("late", "sleep(1); return daemon(1, 1);")
        let script = "{ \"$0\" run --output \"$1\" -- \"$2\"; echo $? >\"$3\"; } 2>&1 | true"
        try Command(
            program: try #require(Command.find("env")),
            arguments: [
                "--default-signal=PIPE", "sh", "-c", script, try Command.product("stallwatch"),
                directory.path("reports"), program, directory.path("status"),
            ]
        ).succeed()
        #expect(try String(contentsOfFile: directory.path("status"), encoding: .utf8) == "0\n")
    }

    @Test(.needsGLib) func `a poll function that the program sets later stays`() throws {
        let output = try run([try RunProgram.glib.path(), "poll"])
        #expect(output.status == 7)
        #expect(output.errors.hasSuffix("set a poll function of its own, so its GLib loop was not watched any more\n"))
    }

    @Test(.needsGLib) func `a program that ends in a signal handler ends`() throws {
        for _ in 0..<3 {
            let output = try run([try RunProgram.glib.path(), "handler"])
            #expect(output.status == 3)
            #expect(tellsOfStalls(output.errors), "\(output.errors)")
            try FileManager.default.removeItem(atPath: reports)
        }
    }

    @Test(.needsGLib) func `a program that forks while the monitor is loaded loses no child`() throws {
        let output = try run([try RunProgram.glib.path(), "fork"])
        #expect(output.status == 0, "\(output.text)")
    }

    @Test(.needsGLib) func `children do not see the library unless they are asked for`() throws {
        let program = try RunProgram.glib.path()
        #expect(try run([program, "child"]).output == "")
        let names = ["LD_PRELOAD", "STALLWATCH_RUN_LIBRARY", "STALLWATCH_RUN_OUTPUT", "STALLWATCH_RUN_SETTINGS"]
        let all = try run([program, "child"], options: ["--children"]).output
        #expect(all.split(separator: "\n").map(String.init) == names)
        _ = try run([program, "start", "stall"])
        #expect(try writtenReports().isEmpty)
        _ = try run([program, "start", "stall"], options: ["--children"])
        #expect(try stalls(in: "wait_in_a_callback").count == 1)
    }

    @Test(.needsGLib) func `the program keeps the process id and dies of its signals`() throws {
        let program = try RunProgram.glib.path()
        let tool = try Command.product("stallwatch")
        let line = "\"$1\" run --quiet --output reports -- \"$2\" signal $3; echo $?"
        for (signal, status) in [(9, 137), (15, 143), (13, 141)] {
            let shell = Command(
                program: "/bin/bash", arguments: ["-c", line, "bash", tool, program, "\(signal)"],
                directory: directory.path)
            #expect(try shell.succeed() == "\(status)\n")
        }
        let same = Command(
            program: "/bin/bash",
            arguments: ["-c", "\"$1\" run -- /bin/sh -c 'echo $$' & wait; echo $!", "bash", tool],
            directory: directory.path)
        let ids = try same.succeed().split(separator: "\n")
        #expect(ids.count == 2 && ids[0] == ids[1])
    }

    @Test(.needsGLib) func `blocked and ignored signals stay as they were`() throws {
        let program = try RunProgram.glib.path()
        let tool = try Command.product("stallwatch")
        // The shell ignores SIGPIPE and SIGHUP for the program.
        for trap in ["trap '' PIPE HUP", "trap - PIPE"] {
            let outputs = try [[program], [tool, "run", "--", program]].map { words in
                try Command(
                    program: "/bin/bash", arguments: ["-c", "\(trap); \"$@\"", "bash"] + words,
                    directory: directory.path
                ).run().output.split(separator: "\n").filter { $0.hasPrefix("Sig") }
            }
            #expect(outputs[0] == outputs[1] && outputs[0].count == 2)
        }
    }
}
