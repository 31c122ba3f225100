import Foundation
import TestSupport
import Testing

@testable import StallReports

/// A program with so many symbols that reading them takes longer than its first stall.
@Suite struct LargeProgramTests {
    private static let count = 500_000

    /// The watchdog reads no symbols before it looks: its first sample is there while another thread still reads them.
    @Test func `a stall that begins with the start is sampled before 500,000 symbols are read`() throws {
        let directory = try TemporaryDirectory()
        guard let libraries = SymbolicationToolchain.directory.map({ $0 + "/../lib/swift/linux" }),
            FileManager.default.fileExists(atPath: libraries + "/libdispatch.so")
        else { return notRun("the toolchain has no libdispatch") }
        // Under another name it is looked for in the executable.
        let dispatch = directory.path("libdispatch-copy.so")
        try FileManager.default.copyItem(atPath: libraries + "/libdispatch.so", toPath: dispatch)
        let program = directory.path("program")
        try Self.copy(try Command.product("stallwatch-test-host"), to: program)
        let paths = [libraries, ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"]].compactMap(\.self)
        let environment = ["LD_PRELOAD=\(dispatch)", "LD_LIBRARY_PATH=\(paths.joined(separator: ":"))"]
        var isFirst = false
        // A busy machine may keep the watchdog from its CPU for as long.
        for attempt in 0..<5 where !isFirst {
            let folder = directory.path("reports-\(attempt)")
            let lines = try TestHost(["first-stall", folder], wrapper: environment, program: program).finish()
            let reports = try FileManager.default.contentsOfDirectory(atPath: folder).filter(StallReport.isFileName)
                .map { try directory.report("reports-\(attempt)/\($0)") }
            #expect(reports.contains { !$0.samples.isEmpty }, "\(reports.map(\.summary))")
            isFirst = lines.contains("R reading")
        }
        #expect(isFirst)
    }

    /// Copies an executable, with as many symbols of functions more.
    private static func copy(_ program: String, to path: String) throws {
        try FileManager.default.copyItem(atPath: program, toPath: path)
        var file = try Data(contentsOf: URL(fileURLWithPath: path))
        // elf(5): the executable's header, its section headers, and a symbol.
        let headers = Int(number(UInt64.self, in: file, at: 40))
        let sections = (0..<Int(number(UInt16.self, in: file, at: 60))).map { headers + $0 * 64 }
        let symbols = try #require(sections.first { number(UInt32.self, in: file, at: $0 + 4) == 2 }, "no .symtab")
        let strings = sections[Int(number(UInt32.self, in: file, at: symbols + 40))]
        var names = contents(of: strings, in: file)
        var entries = contents(of: symbols, in: file)
        let address = number(UInt64.self, in: file, at: 24)
        for index in 0..<count {
            append(UInt32(names.count), to: &entries)
            // A global function in the first section, one byte long.
            entries.append(contentsOf: [0x12, 0, 1, 0])
            append(address, to: &entries)
            append(UInt64(1), to: &entries)
            names.append(contentsOf: "function\(index)".utf8)
            names.append(0)
        }
        for (section, bytes) in [(symbols, entries), (strings, names)] {
            file.append(Data(count: (8 - file.count % 8) % 8))
            replace(UInt64(file.count), in: &file, at: section + 24)
            replace(UInt64(bytes.count), in: &file, at: section + 32)
            file.append(bytes)
        }
        try file.write(to: URL(fileURLWithPath: path))
    }

    private static func number<Number: FixedWidthInteger>(
        _ type: Number.Type, in file: Data, at offset: Int
    ) -> Number {
        file.withUnsafeBytes { Number(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: Number.self)) }
    }

    private static func contents(of section: Int, in file: Data) -> Data {
        let offset = Int(number(UInt64.self, in: file, at: section + 24))
        return Data(file[offset..<offset + Int(number(UInt64.self, in: file, at: section + 32))])
    }

    private static func append(_ number: some FixedWidthInteger, to bytes: inout Data) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    private static func replace(_ number: UInt64, in file: inout Data, at offset: Int) {
        withUnsafeBytes(of: number.littleEndian) { file.replaceSubrange(offset..<offset + 8, with: $0) }
    }
}
