import Foundation
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallSymbols

@Suite struct DemanglerTests {
    @Test(arguments: [
        ("$s5notes9NoteStoreC4saveyyAA4NoteVF", "NoteStore.save(_:)"),
        ("$s5notes4main5countySi_tF", "main(count:)"),
        ("$s5notes9NoteStoreC4saveyyAA4NoteVFTm", "merged NoteStore.save(_:)"),
        ("$s5notesyyXEfU_", "closure #1 in notes"),
        ("$s5notesyyYacfU1_TATQ0_", "partial apply for closure #3 in notes"),
        ("$s5notesySicfU0_yyXEfU_", "closure #1 in closure #2 in notes"),
        ("_ZN5notes5StoreC1Ev", "notes::Store::Store()"),
        ("_Z4saveRKSs", "save(std::string const&)"),
        ("_ZN5notes5store4save17h0123456789abcdefE", "notes::store::save"),
        ("_ZN5notes17h0123456789abcdeg4saveEv", "notes::h0123456789abcdeg::save()"),
        ("_ZN4mail5fetchEPZNS_5fetchEiE18_ZN4mail5fetchEi.Frame.actor", "mail::fetch(int)"),
        ("_ZN4mail5fetchEPZNS_5fetchEiE18_ZN4mail5fetchEi.Frame.actor.cold", "mail::fetch(int)"),
    ])
    func aMangledNameIsTurnedIntoWhatWasWritten(symbol: String, name: String) {
        #expect(Demangler.functionName(symbol) == name)
    }

    @Test(arguments: [
        "", "pthread_mutex_lock", "__CFRunLoopRun", "main", "$", "$s", "_Z", "$sNotMangledAtAll", "$s9nope",
        "_ZNotMangled", "_ZNope", "na\u{308}me",
    ])
    func otherNamesAreUnchanged(symbol: String) {
        #expect(Demangler.functionName(symbol) == symbol)
    }

    /// Symbol tables are untrusted input: any bytes give a name and no crash.
    @Test(
        arguments: [
            ("$s3App4load4pathSiSS_tF", true), ("$s3App4load4pathySS_tF", false), ("$s3App4stops5NeverOyF", false),
            ("$s3App4loadyyFSiyXEfU_", true), ("$s3App4loadSiyFyycfU_", false), ("$s3App5ShelfC4slowACSi_tcfC", true),
            ("$s3App5ShelfCfD", nil), ("_ZN3App4loadEv", nil), ("main", nil),
        ] as [(String, Bool?)])
    func `a name may tell that a function returns a value`(symbol: String, returnsValue: Bool?) {
        #expect(Demangler.returnsValue(symbol) == returnsValue)
    }

    @Test func damagedNamesDoNotCrashTheDemangler() {
        let good = Array("$s5notes9NoteStoreC4saveyyAA4NoteV_SayAFGtYaKF".utf8)
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<3_000 {
            var bytes = good
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let place = Int.random(in: 2..<bytes.count, using: &generator)
                bytes[place] = UInt8.random(in: 0x20...0x7e, using: &generator)
            }
            let symbol = String(
                decoding: bytes.prefix(Int.random(in: 2...bytes.count, using: &generator)), as: UTF8.self)
            #expect(!Demangler.functionName(symbol).isEmpty)
        }
    }

    /// The runtime recurses twice for each byte of such a name.
    @Test(arguments: ["m", "z", "Sg"]) func `the longest nested names fit the stack of a thread that names functions`(
        part: String
    ) throws {
        let start = "$s4main1fyySi"
        let count = (Demangler.maximumSymbolBytes - start.utf8.count - 1) / part.utf8.count
        let symbol = start + String(repeating: part, count: count) + "F"
        let name = Mutex("")
        let thread = try WorkerThread(name: "test-names", namesFunctions: true) {
            let found = Demangler.functionName(symbol)
            name.withLock { $0 = found }
        }
        thread.join()
        #expect(name.withLock { $0 } == "f(_:)")
    }

    // MARK: Names that stand for long ones

    /// `working(_: P<Int, Int>, _: P<P<…>, P<…>>, …)`: each type has the one before it twice.
    private static func swiftName(levels: Int) -> String {
        var names = SwiftManglings()
        return names.function((0..<levels).map { _ in names.pair(names.last, names.last) })
    }

    private static func cxxName(levels: Int) -> String {
        var names = CXXManglings()
        return names.function((0..<levels).map { _ in names.pair(names.last, names.last) })
    }

    @Test(arguments: 0...5) func `a name that refers to itself a few times is demangled`(levels: Int) {
        #expect(Demangler.functionName(Self.swiftName(levels: levels)).hasPrefix("working("))
        #expect(Demangler.functionName(Self.cxxName(levels: levels)).hasPrefix("working(P<int, int>"))
    }

    /// Its length would be that power of two.
    @Test(arguments: [20, 24, 60, 200]) func `a name that explodes stays as it is`(levels: Int) {
        for symbol in [Self.swiftName(levels: levels), Self.cxxName(levels: levels)] {
            #expect(Demangler.functionName(symbol) == symbol)
            #expect(Demangler.longName(symbol) == nil)
        }
        // 2,048 times the same argument, again and again; and 500 words of 500 letters.
        let repeated =
            "$s4main7workingyyAA1PVyS2iG_"
            + (0..<levels).map { "A1024\(Character(Unicode.Scalar(69 + UInt8($0 % 8))))" }.joined() + "tF"
        #expect(Demangler.functionName(repeated) == repeated)
        #expect(ManglingSize(repeated, isSwift: true).expanded > Demangler.maximumExpandedSize)
    }

    @Test func `an identifier of many words counts with them`() {
        let word = "Working" + String(repeating: "x", count: 2_000)
        let symbol = "$s\(word.utf8.count)\(word)0" + String(repeating: "a", count: 500) + "B0yyF"
        #expect(ManglingSize(symbol, isSwift: true).expanded > Demangler.maximumExpandedSize)
    }

    @Test(arguments: [
        "$s7Testing5EventV27HumanReadableOutputRecorderV12_issueCounts33_00ABC4D9283F1DC320C8520EB9A815F8LL2inSi_tF",
        "$s18PackageCollections06SQLiteaB7StorageC010CollectionA033_E1C6DC639D35EDED151EA59043957FF7LLVwst",
        "$s20_CompilerRegexParser13PrettyPrinterV6result024_0FD5905DA63791B07B4D6E0J7BD17623LLSSvpfi",
        "_ZN5swift7runtime11environment30SWIFT_BACKTRACE_isSet_variableE",
        "_ZNSt6vectorIN3foo3barESaIS1_EE9push_backEOS1_",
        "_ZNSt8_Rb_treeISsSt4pairIKSsiESt10_Select1stIS2_ESt4lessISsESaIS2_EE8_M_eraseEPSt13_Rb_tree_nodeIS2_E",
    ])
    func `what compilers write is far from the limit`(symbol: String) {
        #expect(ManglingSize(symbol, isSwift: symbol.hasPrefix("$")).expanded < 16_384)
    }

    /// `STALLWATCH_FUZZED_NAMES` is another number of names of each language.
    @Test func `random valid names take little time and stay short`() throws {
        let count = ProcessInfo.processInfo.environment["STALLWATCH_FUZZED_NAMES"].flatMap(Int.init) ?? 3_000
        var random = SeededGenerator(seed: 57)
        var demangled = [0, 0, 0]
        for index in 0..<count {
            var (swift, cxx) = (SwiftManglings(), CXXManglings())
            let size = Int.random(in: 0...(index % 20 == 0 ? 200 : 12), using: &random)
            let hash = (0..<16).map { _ in String(Int.random(in: 0...15, using: &random), radix: 16) }.joined()
            let symbols = [
                swift.function((0..<size).map { _ in swift.type(&random) }),
                cxx.function((0..<size).map { _ in cxx.type(&random) }),
                "_ZN7working" + String(repeating: "4core", count: size) + "17h\(hash)E",
            ]
            for (language, symbol) in symbols.enumerated() {
                let before = threadTimeNow()
                let name = Demangler.functionName(symbol)
                #expect(threadTimeNow() - before < 50_000_000, "\(symbol)")
                #expect(name == symbol || name.hasPrefix("working"), "\(symbol): \(name)")
                #expect(name == symbol || name.utf8.count <= Demangler.maximumNameBytes)
                if name != symbol { demangled[language] += 1 }
            }
            let other = "_RNvNtCs\(hash)_7working\(size)_4core4main"
            #expect(Demangler.functionName(other) == other)
        }
        #expect(demangled.allSatisfy { $0 > count / 4 }, "\(demangled) of \(count): not what compilers write")
    }
}

/// Writes mangled names of functions with random types, and numbers what can be referred to (Mangling.rst).
private struct SwiftManglings {
    // 0 is the module, 1 the function's identifier, 2 and 3 the identifier and the type P, and 4 P<Int, Int>.
    private var count = 5

    func function(_ types: [String]) -> String {
        "$s4main7workingyyAA1PVyS2iG" + (types.isEmpty ? "F" : "_\(types.joined())tF")
    }

    var last: String { reference(count - 1) }

    private func reference(_ index: Int) -> String {
        guard index >= 26 else { return "A\(Character(Unicode.Scalar(UInt8(65 + index))))" }
        return index == 26 ? "A_" : "A\(index - 27)_"
    }

    mutating func pair(_ first: String, _ second: String) -> String {
        count += 1
        return "ADy\(first)\(second)G"
    }

    mutating func type(_ random: inout SeededGenerator) -> String {
        switch Int.random(in: 0..<12, using: &random) {
        case 0: return "Si"
        case 1: return "SS"
        case 2...5: return reference(Int.random(in: 4..<count, using: &random))
        case 6, 7: return pair(type(&random), type(&random))
        case 8:
            let element = type(&random)
            count += 1
            return "Say\(element)G"
        case 9:
            let wrapped = type(&random)
            count += 1
            return "\(wrapped)Sg"
        case 10: return "\(type(&random))_\(type(&random))t"
        default: return "y\(type(&random))c"
        }
    }
}

/// The same for C++ (Itanium C++ ABI, "Mangling").
private struct CXXManglings {
    // 0 is the template P, and 1 P<int, int>.
    private var count = 2

    func function(_ types: [String]) -> String { "_Z7working1PIiiE" + types.joined() }

    var last: String { reference(count - 1) }

    private func reference(_ index: Int) -> String {
        index == 0 ? "S_" : "S\(String(index - 1, radix: 36).uppercased())_"
    }

    mutating func pair(_ first: String, _ second: String) -> String {
        count += 1
        return "S_I\(first)\(second)E"
    }

    mutating func type(_ random: inout SeededGenerator) -> String {
        switch Int.random(in: 0..<10, using: &random) {
        case 0: return "i"
        case 1: return "y"
        case 2...5: return reference(Int.random(in: 1..<count, using: &random))
        case 6, 7: return pair(type(&random), type(&random))
        case 8:
            let pointed = type(&random)
            count += 1
            return "P\(pointed)"
        default:
            let parameter = type(&random)
            count += 2
            return "PFv\(parameter)E"
        }
    }
}
