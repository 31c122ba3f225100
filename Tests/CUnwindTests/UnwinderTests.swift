import CUnwind
import CUnwindTestSupport
import Foundation
import Testing

/// libunwind and the built-in stepper have the same results, and the built-in one stands in.
@Suite struct UnwinderTests {
    /// Whether all functions are stepped out of, and not one in 40.
    static let isWhole = ProcessInfo.processInfo.environment["STALLWATCH_FUZZ_WHOLE"] == "1"

    static let hasLibrary = ProcessInfo.processInfo.environment["STALLWATCH_UNWINDER"] != "builtin"

    /// Registers as after a read, without the frame pointer, and whole; exact PCs and return addresses.
    ///
    /// Random pages of tables replace each other in the cache, and the same PC is stepped from as both kinds.
    @Test(.enabled(if: hasLibrary)) func `both steppers agree about the functions of all images`() throws {
        let seed = FuzzTests.seed(from: ProcessInfo.processInfo.environment)
        let result = cunwind_test_compare_steppers(seed, Self.isWhole ? 1 : 40)
        print("steppers: seed \(seed): \(result)")
        #expect(result.has_library)
        #expect(result.functions > 1000)
        #expect(result.compared > result.functions)
        #expect(result.disagreements == 0, "first at PC \(String(result.first, radix: 16)), seed \(seed)")
        // Ours has more rules than libunwind, but compilers do not use them.
        #expect(result.stood_in < result.compared / 1000)
    }

    @Test func `an engine names its unwinder`() throws {
        let engine = try #require(cunwind_test_engine(SIGURG))
        defer { cunwind_engine_destroy(engine) }
        let unwinder = cunwind_engine_unwinder(engine)
        let name = String(cString: unwinder.name)
        if ProcessInfo.processInfo.environment["STALLWATCH_UNWINDER"] == "builtin" {
            #expect(name == "built-in")
            #expect(unwinder.reason.map { String(cString: $0) } == "STALLWATCH_UNWINDER is builtin")
        } else {
            #expect(name.hasPrefix("libunwind 1."))
            #expect(unwinder.reason == nil)
        }
    }

    /// By itself libunwind guesses by the frame pointer, and takes an unknown register for 0.
    @Test(.enabled(if: hasLibrary)) func `a step without what it needs is no guess`() {
        let result = cunwind_test_stepper_traps()
        // CUNWIND_STEP_NO_INFO and CUNWIND_STEP_UNKNOWN_REGISTER.
        #expect(result.uncovered_by_library == 2 && result.uncovered == 2, "\(result)")
        #expect((result.read_by_library == 2 || result.read_by_library == 3) && result.read == 3, "\(result)")
    }

    /// A program keeps its own: RTLD_LOCAL hides libunwind's, and `backtrace` stays glibc's.
    @Test func `libunwind takes no symbol of the program`() throws {
        let engine = try #require(cunwind_test_engine(SIGURG))
        defer { cunwind_engine_destroy(engine) }
        for name in ["_Unwind_RaiseException", "_Unwind_Backtrace", "_Unwind_Resume", "backtrace"] {
            let file = try #require(Self.file(of: name))
            #expect(!file.contains("libunwind"), "\(name) of \(file)")
        }
        #expect(dlsym(nil, "_Ux86_64_step") == nil && dlsym(nil, "_Uaarch64_step") == nil)
    }

    @Test func `a child of fork leaves libunwind alone`() {
        #expect(cunwind_test_child_leaves_libunwind_alone())
    }

    /// Returns the path of the file that has a symbol.
    fileprivate static func file(of symbol: String, in library: String? = nil) -> String? {
        var path = [CChar](repeating: 0, count: 4096)
        guard cunwind_test_file_of(library, symbol, &path, path.count) else { return nil }
        return String(decoding: path.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

extension ImageTests {
    /// Files that have libunwind's name and are something else.
    ///
    /// In the suite that counts images, because they come and go.
    @Suite struct UnwinderFileTests {
        /// Writes a file with libunwind's name and returns what loading it says; `nil` if it was loaded.
        private func reason(_ make: (String) throws -> Void) throws -> String? {
            let directory = FileManager.default.temporaryDirectory.path + "/unwinder-\(UUID().uuidString)"
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let path = directory + "/libunwind-x86_64.so.8"
            try make(path)
            var text = [CChar](repeating: 0, count: 256)
            let isLoaded = cunwind_test_load_unwinder(path, &text, text.count)
            return isLoaded
                ? nil : String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        }

        @Test func `a file that is no library is refused`() throws {
            let text = try #require(try reason { try Data("no library".utf8).write(to: URL(fileURLWithPath: $0)) })
            #expect(text.contains("file too short") || text.contains("invalid ELF header"), "\(text)")
        }

        @Test func `a directory in the library's place is refused`() throws {
            let text = try #require(
                try reason { try FileManager.default.createDirectory(atPath: $0, withIntermediateDirectories: false) })
            #expect(!text.isEmpty)
        }

        @Test func `a library that is cut short is refused`() throws {
            let whole = try Data(contentsOf: URL(fileURLWithPath: try #require(Self.libraryPath)))
            let text = try #require(try reason { try whole.prefix(512).write(to: URL(fileURLWithPath: $0)) })
            #expect(!text.isEmpty)
        }

        @Test func `a library without libunwind's functions is refused`() throws {
            let other = try #require(UnwinderTests.file(of: "cos", in: "libm.so.6"))
            let text = try #require(try reason { try FileManager.default.copyItem(atPath: other, toPath: $0) })
            #expect(text.hasSuffix("lacks functions of libunwind"), "\(text)")
        }

        private static var libraryPath: String? {
            UnwinderTests.file(of: "_Ux86_64_step", in: "libunwind-x86_64.so.8")
                ?? UnwinderTests.file(of: "_Uaarch64_step", in: "libunwind-aarch64.so.8")
        }
    }
}
