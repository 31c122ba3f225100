import Foundation
import Glibc
import TestSupport
import Testing

@testable import StackCapture
@testable import StallReports
@testable import StallSymbols
@testable import StallWatch

/// Executables for address lookups; each is built once per run, when it is first needed.
enum SymbolicationFixture {
    /// 20 MB of optimized Swift with the static standard library.
    static let release = Result { try swift("release", types: 24, ["-O", "-static-stdlib"]) }
    /// The same source, not optimized.
    static let debug = Result { try swift("debug", types: 12, ["-Onone"]) }
    /// Optimized Swift, C (DWARF 5) and C++ in one file.
    static let mixed = Result { try mixedExecutable() }

    private static func swift(_ name: String, types: Int, _ options: [String]) throws -> String {
        let source = try write(swiftSource(types: types), to: "\(name).swift")
        let output = "\(SymbolicationToolchain.scratch)/\(name)"
        try SymbolicationToolchain.run(
            "swiftc", ["-swift-version", "5", "-g", "-module-name", name + "Fixture", source, "-o", output] + options
        )
        return output
    }

    private static func mixedExecutable() throws -> String {
        let c = try write(cSource, to: "mixed.c")
        let cxx = try write(cxxSource, to: "mixed.cpp")
        let swift = try write(mixedSwiftSource, to: "mixed.swift")
        let output = "\(SymbolicationToolchain.scratch)/mixed"
        try SymbolicationToolchain.run("clang", ["-O2", "-g", "-gdwarf-5", "-c", c, "-o", "\(c).o"])
        try SymbolicationToolchain.run("clang", ["-O2", "-g", "-std=c++17", "-c", cxx, "-o", "\(cxx).o"])
        try SymbolicationToolchain.run(
            "swiftc",
            ["-swift-version", "5", "-O", "-g", "-module-name", "mixedFixture", swift, "\(c).o", "\(cxx).o"]
                + ["-lstdc++", "-o", output, "-Xlinker", "--build-id"]
        )
        return output
    }

    /// Optimized C++ whose debug information has the format that clang's `options` select.
    static func cxx(_ options: [String]) throws -> String {
        let name = "cxx" + options.joined()
        let main = "int main(int count, char **) { return cxx_area(count); }\n"
        let source = try write(cxxSource + main, to: "\(name).cpp")
        let output = "\(SymbolicationToolchain.scratch)/\(name)"
        try SymbolicationToolchain.run(
            "clang++", ["-O2", "-std=c++17", source, "-o", output, "-Wl,--build-id"] + options
        )
        return output
    }

    static func write(_ text: String, to name: String) throws -> String {
        let path = "\(SymbolicationToolchain.scratch)/\(name)"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    /// Assembly with a line table (DWARF 4) of a million rows, each a special opcode that advances by one byte.
    static let denseLineTable = """
        .text
        .globl main
        .type main, @function
        main: .fill 4096, 1, 0x90
        ret
        .size main, 4097
        .section .debug_abbrev, "", @progbits
        .byte 1, 0x11, 0, 0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0, 0, 0
        .section .debug_info, "", @progbits
        .long 2f - 1f
        1: .short 4
        .long 0
        .byte 8, 1
        .quad main, 4097
        .long 0
        2:
        .section .debug_line, "", @progbits
        .long 6f - 3f
        3: .short 4
        .long 5f - 4f
        4: .byte 1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0
        .asciz "dense.c"
        .byte 0, 0, 0, 0
        5: .byte 0, 9, 2
        .quad main
        .fill 1000000, 1, 32
        .byte 0, 1, 1
        6:

        """

    /// Generic types, closures, lazy sequences and async functions, which the optimizer inlines and specializes most.
    private static func swiftSource(types: Int) -> String {
        let header = """
            import FoundationEssentials
            @inline(never) func sink<T>(_ value: T) { withUnsafePointer(to: value) { _ = UInt(bitPattern: $0) } }

            """
        let bodies = (0..<types).map { number in
            """
            protocol Shape\(number) { associatedtype Unit; func area(_ by: Unit) -> Double; func name() throws -> String }
            struct Box\(number)<Element: Hashable & Comparable>: Shape\(number) {
                var items: [Element: Int] = [:]
                var list: [Element] = []
                func area(_ by: Element) -> Double {
                    list.filter { $0 < by }.map { Double(items[$0] ?? \(number)) }.reduce(0, +)
                }
                func name() throws -> String {
                    if list.isEmpty { throw CocoaError(.fileNoSuchFile) }
                    return list.map { "\\($0)" }.joined(separator: "-\(number)")
                }
                mutating func add(_ element: Element) {
                    items[element, default: 0] += 1
                    list.append(element)
                    list.sort { $0.hashValue < $1.hashValue }
                }
            }
            final class Store\(number): @unchecked Sendable {
                var box = Box\(number)<Int>()
                var text = Data()
                func save(_ n: Int) -> Int {
                    for k in 0..<n { box.add(k &* \(number + 3)); text.append(contentsOf: "line \\(k)".utf8) }
                    let closure: (Int) -> Int = { [self] value in box.items[value] ?? text.count }
                    return (0..<n).lazy.map(closure).filter { $0 % 2 == \(number % 2) }.reduce(0, &+)
                }
                func load(_ n: Int) async throws -> String {
                    let first = try await step(n + 1)
                    let name = try box.name()
                    await Task.yield()
                    return first + name + "\\(n)"
                }
                private func step(_ n: Int) async throws -> String {
                    if n > \(number) { try await Task.sleep(nanoseconds: 1) }
                    return try String(decoding: JSONEncoder().encode([n, n * 2]), as: UTF8.self)
                }
            }

            """
        }
        let stores = (0..<types).map { "{ Store\($0)().save($0) }" }.joined(separator: ", ")
        let loads = (0..<types).map { "{ try await Store\($0)().load($0) }" }.joined(separator: ", ")
        return header + bodies.joined() + """
            let stores: [@Sendable (Int) -> Int] = [\(stores)]
            let loads: [@Sendable (Int) async throws -> String] = [\(loads)]
            for store in stores { sink(store(3)) }
            for load in loads { sink(try await load(2)) }

            """
    }

    private static let cSource = """
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        static inline int hash(const char *text) { int h = 7; while (*text) h = h * 31 + *text++; return h ^ rand(); }
        static int compare(const void *a, const void *b) { return hash(a) - hash(b); }
        __attribute__((noinline)) static char *copy(const char *text) { char *to = malloc(strlen(text) + 1); strcpy(to, text); return to; }
        int c_sort(int n) {
          char (*list)[8] = calloc((size_t)n, 8);
          for (int i = 0; i < n; i++) snprintf(list[i], 8, "%d", rand());
          qsort(list, (size_t)n, 8, compare);
          char *first = copy(list[0]);
          int result = hash(first) + hash(list[n - 1]);
          free(first); free(list);
          return result;
        }

        """

    private static let cxxSource = """
        #include <algorithm>
        #include <map>
        #include <numeric>
        #include <stdexcept>
        #include <string>
        #include <vector>
        namespace shapes {
        struct Area { virtual ~Area() = default; virtual double of(const std::string &name) const = 0; };
        template <class T> struct Scaled : Area {
          std::map<std::string, T> table; T by;
          explicit Scaled(T by) : by(by) { for (int i = 0; i < 20; i++) table.emplace(std::to_string(i), T(i)); }
          double of(const std::string &name) const override {
            auto found = table.find(name);
            if (found == table.end()) throw std::out_of_range(name);
            return found->second * by;
          }
        };
        static std::vector<int> numbers(int n) {
          std::vector<int> list(n); std::iota(list.begin(), list.end(), 0);
          std::sort(list.begin(), list.end(), [](int a, int b) { return std::to_string(a) < std::to_string(b); });
          return list;
        }
        }
        extern "C" int cxx_area(int n) {
          shapes::Scaled<double> big(3.5); shapes::Scaled<int> small(2);
          double sum = 0;
          for (int each : shapes::numbers(n)) {
            try { sum += big.of(std::to_string(each)) + small.of(std::to_string(each * 2)); } catch (const std::exception &error) { sum -= error.what()[0]; }
          }
          return (int)sum;
        }

        """

    private static let mixedSwiftSource = """
        @_silgen_name("c_sort") func cSort(_ n: Int32) -> Int32
        @_silgen_name("cxx_area") func cxxArea(_ n: Int32) -> Int32
        struct Notes {
            var list: [String: [Int32]] = [:]
            mutating func add(_ n: Int32) { list["\\(n % 7)", default: []].append(cSort(n)) }
            func total() -> Int32 { list.values.flatMap { $0 }.map { cxxArea($0 & 63) }.reduce(0, &+) }
        }
        var notes = Notes()
        for n in 1..<Int32(CommandLine.arguments.count + 40) { notes.add(n) }
        print(notes.total())

        """
}

/// The lookup addresses (return address minus one) of direct calls in an executable.
enum CallSites {
    /// Returns all call sites, ascending: `E8` with an offset that leads to a function's first byte.
    static func all(in path: String) throws -> [UInt64] {
        let file = try ELFFile(path: path)
        let header = try file.header()
        let named = try file.namedSections()
        let text = try #require(named[".text"])
        let symbols = try file.bytes(of: #require(named[".symtab"]), atMost: 1 << 30)
        var functions: Set<UInt64> = []
        symbols.withUnsafeBytes { bytes in
            for offset in stride(from: 0, to: bytes.count - 23, by: 24) {
                let symbol = bytes.loadUnaligned(fromByteOffset: offset, as: Elf64_Sym.self)
                if symbol.st_info & 0xf == 2, symbol.st_shndx != 0 { functions.insert(symbol.st_value) }
            }
        }
        let address = try address(ofSectionAt: text.sh_offset, header, file)
        let code = try file.bytes(of: text, atMost: 1 << 30)
        return code.withUnsafeBytes { bytes in
            var found: [UInt64] = []
            guard let base = bytes.baseAddress else { return found }
            var place = 0
            while place + 5 <= bytes.count, let hit = memchr(base + place, 0xe8, bytes.count - 4 - place) {
                place = base.distance(to: UnsafeRawPointer(hit))
                let offset = Int64(bytes.loadUnaligned(fromByteOffset: place + 1, as: Int32.self))
                let next = address + UInt64(place) + 5
                if functions.contains(next &+ UInt64(bitPattern: offset)) { found.append(next - 1) }
                place += 1
            }
            return found
        }
    }

    private static func address(ofSectionAt offset: UInt64, _ header: Elf64_Ehdr, _ file: ELFFile) throws -> UInt64 {
        for index in 0..<UInt64(header.e_shnum) {
            let bytes = try file.bytes(at: header.e_shoff + index * 64, count: 64, atMost: 64)
            let section = bytes.withUnsafeBytes { $0.loadUnaligned(as: Elf64_Shdr.self) }
            if section.sh_offset == offset, section.sh_type == 1 { return section.sh_addr }
        }
        throw Command.Failure(description: "no section begins at \(offset)")
    }
}

/// The mixed executable split into a stripped executable and a debug file.
struct SymbolicationParts {
    static let shared = Result { try SymbolicationParts() }

    let whole: String
    let stripped: String
    let debugFile: String
    let buildID: String
    private let sites: [UInt64]

    private init() throws {
        whole = try SymbolicationFixture.mixed.get()
        let scratch = SymbolicationToolchain.scratch
        stripped = "\(scratch)/mixed.stripped"
        debugFile = "\(scratch)/mixed.debug"
        buildID = try #require(try ELFFile(path: whole).buildID())
        try SymbolicationToolchain.run("llvm-objcopy", ["--only-keep-debug", whole, debugFile])
        try SymbolicationToolchain.run(
            "llvm-objcopy", ["--strip-all", "--add-gnu-debuglink=\(debugFile)", whole, stripped]
        )
        var generator = SeededGenerator(seed: 1)
        sites = Array(try CallSites.all(in: whole).shuffled(using: &generator).prefix(60))
    }

    func directory(_ name: String) throws -> String {
        let path = "\(SymbolicationToolchain.scratch)/\(name)"
        try? FileManager.default.removeItem(atPath: path)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        return path
    }

    /// Returns a report with an unnamed stack, like that of a stripped program.
    func report(imageAt path: String, buildID: String?) -> StallReport {
        SymbolicationReport.make(imageAt: path, buildID: buildID, offsets: sites)
    }

    func report(imageAt path: String) -> StallReport { report(imageAt: path, buildID: buildID) }

    func expected() throws -> StallReport {
        report(imageAt: whole).symbolicated()
    }

    /// Expects a report of the stripped executable to equal that of the unstripped one.
    func expectWhole(_ report: StallReport) throws {
        let expected = try expected()
        #expect(report.frames == expected.frames)
        #expect(report.stacks == expected.stacks)
        #expect(report.culprit?.function == expected.culprit?.function)
        #expect(report.culprit?.line == expected.culprit?.line)
        #expect(report.images.map(\.reason) == [nil])
        #expect(expected.frames.contains { $0.isInlined == true && $0.line != nil })
    }
}

extension StallReport {
    /// Returns the report with the names and lines that can be found for its frames.
    func symbolicated(with symbolication: OfflineSymbolication = OfflineSymbolication()) -> StallReport {
        symbolication.symbolicate(self)
    }
}

enum SymbolicationReport {
    /// Returns a report whose stack has an unnamed frame at each offset of one image.
    static func make(imageAt path: String, buildID: String?, offsets: [UInt64]) -> StallReport {
        let base: UInt64 = 0x10_0000_0000
        let image = LoadedImage(
            path: path, base: base, addresses: base..<base + 0x1000_0000, buildID: bytes(ofHexadecimal: buildID ?? ""),
            contentHash: (try? ELFFile(path: path))?.contentHash().flatMap { UInt64($0, radix: 16) }, isExecutable: true
        )
        let stack = CapturedStack(
            method: .ptrace, threadState: .running,
            frames: offsets.map { CapturedFrame(address: base + $0, isExact: true) },
            isComplete: true, heldNanoseconds: 0, captureNanoseconds: 0
        )
        let record = StallRecord(
            id: "00000000-0000-7000-8000-000000000000", kind: .stall,
            loop: StallRecord.Loop(label: "main", kind: .runLoop, turn: 1, nesting: 0),
            threshold: 250_000_000, startedAt: Timestamp(microsecondsSince1970: 0), watchdogLate: 0, state: .ended,
            duration: 300_000_000,
            samples: [.init(age: 250_000_000, isValid: true, stack: .success(stack), images: ImageList([image]))]
        )
        let builder = ReportBuilder(
            process: .current(), metadata: [:], inApp: InAppSettings(),
            symbolication: .inProcess(.none, inApp: InAppSettings())
        )
        return builder.report(of: record) { _ in }
    }

    private static func bytes(ofHexadecimal text: String) -> [UInt8] {
        let digits = Array(text)
        return stride(from: 0, to: digits.count - digits.count % 2, by: 2).compactMap {
            UInt8(String(digits[$0...$0 + 1]), radix: 16)
        }
    }
}
