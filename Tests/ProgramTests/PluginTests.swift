import Foundation
import StallSymbols
import TestSupport
import Testing

@testable import StallReports

/// Whose code a plug-in without debug information is, which lies in a folder for temporary files.
@Suite(.serialized, .ownThread, .needsToolchain) struct PluginTests {
    @Test func `the function that loads a plug-in or calls it is blamed`() throws {
        let program = try StallingProgram()
        let sources = Repository.support.appendingPathComponent("Plugins").path
        try program.compile(["-O", "-g", "\(sources)/main.swift", "-o", "program"])
        for (name, linking) in [("plugin.so", []), ("stripped.so", ["-s"])] {
            try program.compile(
                ["-O1", "-shared", "-fPIC", "\(sources)/plugin.c", "-o", name] + linking, with: "clang")
            // A busy machine may add a shorter one.
            let reports = try program.reports([program.path(name)], to: "stalls-\(name)")
                .filter { $0.durationMilliseconds >= 500 }
            #expect(Set(reports.compactMap(\.culprit?.function)) == ["loadPlugin(_:)", "runPlugin()"], "\(name)")
            for report in reports {
                let frames = report.frames.filter { $0.image.map { report.images[$0].name } == name }
                #expect(!frames.isEmpty && frames.allSatisfy { !$0.isInApp && $0.isDependency == true })
            }
        }
    }
}

/// A plug-in that has the monitor's code, and is unloaded while that runs.
@Suite(.ownThread, .needsToolchain) struct UnloadedLibraryTests {
    /// As a thread of a monitor would, its thread begins in the library, and returns to it at its end.
    @Test func `a library that has started a thread stays`() throws {
        let program = try StallingProgram()
        let code = Repository.root.appendingPathComponent("Sources/CLinux").path
        let host = Repository.support.appendingPathComponent("Plugins/unload.c").path
        let libraries = ["-pthread", "-ldl", "-lm"]
        try program.compile(
            ["-O1", "-shared", "-fPIC", "-I\(code)/include", "\(code)/threads.c", "-o", "threads.so"] + libraries,
            with: "clang")
        try program.compile(["-O1", host, "-o", "unload"] + libraries, with: "clang")
        try Command(program: program.path("unload"), directory: program.path(".")).succeed()
    }
}

/// A program in a temporary directory, and the reports of its stalls.
struct StallingProgram {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    func path(_ name: String) -> String { directory.path(name) }

    func compile(_ arguments: [String], with compiler: String = "swiftc") throws {
        try Command(
            program: try #require(Command.find(compiler)), arguments: arguments, directory: directory.path
        ).succeed()
    }

    /// Runs the program; returns the reports, which are written to a new folder of that name, with names.
    func reports(_ arguments: [String] = [], to folder: String = "stalls") throws -> [StallReport] {
        try Tool.run(
            ["run", "--quiet", "--threshold", "50ms", "--output", path(folder), "--", path("program")] + arguments)
        let names = try FileManager.default.contentsOfDirectory(atPath: path(folder))
        let symbolication = OfflineSymbolication()
        return try names.filter(StallReport.isFileName).map { name in
            let report = try directory.report("\(folder)/\(name)")
            // The program's end leaves little time for them. Without them a report has what it takes to find them.
            return report.culprit == nil ? symbolication.symbolicate(report) : report
        }
    }
}
