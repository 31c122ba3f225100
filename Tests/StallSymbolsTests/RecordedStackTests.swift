import TestSupport
import Testing

@testable import StallReports
@testable import StallSymbols

/// The blame for stacks that were recorded in release builds with the Swift libraries linked statically.
@Suite struct RecordedStackTests {
    /// A frame of the executable: its symbol, and the line of the app's or a dependency's source, if it has one.
    private struct Recorded {
        var symbol: String
        var file: String?
        var line: Int?
        /// The line of the declaration, in `Sources/notes/Store.swift`.
        var declaration: Int?
        var isArtificial = false
        var isInlined = false

        init(
            _ symbol: String, _ file: String? = nil, _ line: Int? = nil, declaration: Int? = nil,
            isArtificial: Bool = false, isInlined: Bool = false
        ) {
            self.symbol = symbol
            self.file = file.map { $0.hasPrefix("/") ? $0 : "/src/notes/" + $0 }
            self.line = line
            self.declaration = declaration
            self.isArtificial = isArtificial
            self.isInlined = isInlined
        }
    }

    private final class Recording: Symbolicating {
        let lookups: [UInt64: ResolvedAddress]

        init(_ lookups: [UInt64: ResolvedAddress]) { self.lookups = lookups }

        func lookUp(_ offset: UInt64, in image: ImageIdentity, deadline: UInt64) -> ResolvedAddress {
            lookups[offset] ?? ResolvedAddress()
        }
    }

    /// The report of a stall with that stack, innermost frame first, after symbolication.
    private func report(_ stack: [Recorded], _ cause: StallReport.Cause? = nil) throws -> StallReport {
        var lookups: [UInt64: ResolvedAddress] = [:]
        var frames: [StallReport.Frame] = []
        var inlined: [CodeLocation] = []
        for recorded in stack {
            let location = CodeLocation(
                symbol: recorded.symbol, file: recorded.file, line: recorded.line,
                declaration: recorded.declaration.map {
                    CodeLocation.Declaration(file: "/src/notes/Sources/notes/Store.swift", line: $0)
                },
                directory: recorded.file == nil ? nil : "/src/notes", isArtificial: recorded.isArtificial,
                isInlined: recorded.isInlined)
            inlined.append(location)
            if recorded.isInlined { continue }
            let offset = UInt64(frames.count + 1)
            lookups[offset] = ResolvedAddress(locations: inlined, isOutsideDebugInformation: recorded.file == nil)
            frames.append(
                StallReport.Frame(image: 0, offset: .init(offset), isInApp: true, kind: .code))
            inlined.removeAll()
        }
        var report = try StallReport.literal()
        report.images = [
            StallReport.Image(name: "notes", path: "/opt/notes/bin/notes", baseAddress: "0x1", isInApp: true)
        ]
        report.frames = frames
        report.stacks = [Array(frames.indices)]
        report.samples = Array(report.samples.prefix(1))
        report.culprit = nil
        report.callout = nil
        report.cause = cause
        let symbolication = ReportSymbolication(
            symbolicator: Recording(lookups), functions: FunctionClassifier(InAppSettings()), ownExecutable: nil,
            timeLimit: 1_000_000_000, timeout: 1_000_000_000)
        return symbolication.symbolicate(report) { _ in }
    }

    private let loop = [
        Recorded("$sIegh_IeyBh_TR"), Recorded("_dispatch_call_block_and_release"),
        Recorded("_dispatch_main_queue_callback_4CF"),
        Recorded("__CFRUNLOOP_IS_SERVICING_THE_MAIN_DISPATCH_QUEUE__"), Recorded("__CFRunLoopRun"),
        Recorded("CFRunLoopRunSpecific"), Recorded("$s10Foundation7RunLoopC3runyyF"),
        Recorded("notes_main", "Sources/main.swift", 70),
    ]

    private func expectCulprit(
        _ function: String, line: Int, in stack: [Recorded], sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> StallReport {
        let report = try report(stack + loop)
        #expect(report.culprit?.function == function, sourceLocation: sourceLocation)
        #expect(report.culprit?.line == line, sourceLocation: sourceLocation)
        #expect(report.culprit?.file?.hasPrefix("/src/notes/Sources/") == true, sourceLocation: sourceLocation)
        return report
    }

    private func frame(_ function: String, in report: StallReport) throws -> StallReport.Frame {
        try #require(report.frames.first { $0.function == function })
    }

    @Test func queryThroughDependencyIsTheAppsFunction() throws {
        let checkout = ".build/checkouts/GRDB.swift/GRDB/Core/"
        let report = try expectCulprit(
            "countPlayers()", line: 42,
            in: [
                Recorded("$s4GRDB9StatementC4stepyxSgxs13OpaquePointerVKXEKlF", checkout + "Statement.swift", 615),
                Recorded("$s4GRDB14DatabaseCursorPAAE4next7ElementQzSgyKF", checkout + "Statement.swift", 751),
                Recorded(
                    "$s4GRDB8DatabaseC11inSavepointyyAC21TransactionCompletionOyKXEKF", checkout + "Database.swift",
                    1646),
                Recorded("$s5notes12countPlayersyyF", "Sources/notes/Store.swift", 42),
            ])
        #expect(try frame("Statement.step<A>(_:)", in: report).isDependency == true)
    }

    @Test func syncOntoBusyQueueIsTheCaller() throws {
        let report = try expectCulprit(
            "flush()", line: 24,
            in: [
                Recorded("_dispatch_futex_wait"), Recorded("_dispatch_thread_event_wait_slow"),
                Recorded("__DISPATCH_WAIT_FOR_QUEUE__"), Recorded("_dispatch_sync_f_slow"),
                Recorded("$s8Dispatch0A5QueueC4sync7executeyyyXE_tF"),
                Recorded("$s5notes5flushyyF", "Sources/notes/Store.swift", 24),
            ])
        #expect(try frame("__DISPATCH_WAIT_FOR_QUEUE__", in: report).isInApp == false)
        #expect(report.callout == .mainQueue)
    }

    @Test func `metadata of a derived Codable is the decoding function`() throws {
        let report = try expectCulprit(
            "load()", line: 38,
            in: [
                Recorded("_ZL8getCacheRKN5swift27TargetTypeContextDescriptorINS_9InProcessEEE"),
                Recorded(
                    "_ZL25_swift_getGenericMetadataN5swift15MetadataRequestEPKPKvPKNS_27TargetTypeContextDescriptorINS_9InProcessEEE"
                ),
                Recorded("__swift_instantiateCanonicalPrespecializedGenericMetadata"),
                // The compiler gives the derived initializer the file of its type, and no line.
                Recorded("$s5notes4ItemV4fromACs7Decoder_p_tKcfC", "Sources/notes/Item.swift"),
                Recorded("$s5notes4ItemVSeAASe4fromxs7Decoder_p_tKcfCTW", "<compiler-generated>"),
                Recorded("$sSe4fromxs7Decoder_p_tKcfCTj"),
                Recorded("$sSasSeRzlE4fromSayxGs7Decoder_p_tKcfC"),
                Recorded("$s5notes4loadyyF", "Sources/notes/Store.swift", 38),
            ])
        #expect(try frame("Item.init(from:)", in: report).compilerGenerated == .synthesized)
        #expect(report.frames.first?.isInApp == false)
    }

    private static let expansion = "/tmp/swift-generated-sources/@__swiftmacro_5notes12Store8checksumfMm_.swift"
    private static let reload = Recorded("$s5notes6reloadyyF", "Sources/notes/Store.swift", 13)
    private static let open = Recorded("$s5notes15openPreferencesyyF", "Sources/notes/Preferences.swift", 57)

    /// Stacks of which the innermost function is not the culprit, with what that function is.
    private static let passedOver:
        [(rule: String, culprit: String, line: Int, stack: [Recorded], passed: (String, StallReport.GeneratedCode)?)] =
            [
                (
                    "a lazy global is the function that uses it", "showSettings()", 37,
                    [
                        Recorded("_ZN5swift14threading_impl9once_slowERNS0_6once_tEPFvPvES3_"),
                        Recorded(
                            "$s5notes8SettingsO6sharedSaySiGvau", "Sources/notes/Settings.swift", 11, isInlined: true),
                        Recorded("$s5notes12showSettingsyyF", "Sources/notes/Screen.swift", 37),
                    ], ("Settings.shared.unsafeMutableAddressor", .accessor)
                ),
                (
                    "one body stands for two functions: only the caller tells which of them was meant",
                    "openPreferences()", 57,
                    [Recorded("$s5notes17readConfigurationySiSSFTm"), open], ("merged readConfiguration(_:)", .merged)
                ),
                (
                    "what is inlined into a merged body may stand for another function's call, too",
                    "openPreferences()", 57,
                    [
                        Recorded("$s5notes5parseyyF", "Sources/notes/Parser.swift", 3, isInlined: true),
                        Recorded("$s5notes17readConfigurationySiSSFTm", "Sources/notes/Configuration.swift", 9), open,
                    ], ("parse()", .merged)
                ),
                (
                    "a macro's expansion is in no source file: what uses the macro is blamed", "reload()", 13,
                    [
                        Recorded("$s5notes6reloadyyFSiyXEfU0_", expansion, 4, isInlined: true),
                        Recorded(
                            "$s5notes0016Storeswift_eCJAcfMX12_14_8repeatedfMf_", "Sources/notes/Store.swift", 1,
                            isInlined: true), reload,
                    ], ("closure #2 in reload()", .macro)
                ),
                (
                    "a function that a macro makes is the function that uses it", "reload()", 13,
                    [Recorded("$s5notes7CheckedV8checksumSiyF", expansion, 5), reload], nil
                ),
                (
                    "a function whose body a macro writes has the line of its declaration", "save()", 21,
                    [Recorded("$s5notes4saveyyF", expansion, 3, declaration: 21), reload], nil
                ),
                (
                    "the compiler gives a copy constructor the line of its class", "sort_words", 44,
                    [
                        Recorded("_ZN6engine4WordC2EOS0_", "Sources/engine/engine.cpp", 27, isArtificial: true),
                        Recorded("sort_words", "Sources/engine/engine.cpp", 44), reload,
                    ], ("engine::Word::Word(engine::Word&&)", .synthesized)
                ),
                (
                    "GCC calls a coroutine artificial", "mail::fetchInbox(int)", 17,
                    [
                        Recorded(
                            "_ZN4mail10fetchInboxEPZNS_10fetchInboxEiE28_ZN4mail10fetchInboxEi.Frame.actor",
                            "Sources/notes/Store.swift", 17, declaration: 15, isArtificial: true), reload,
                    ], nil
                ),
                (
                    "the compiler calls Swift's closures artificial, too", "closure #1 in reload()", 14,
                    [Recorded("$s5notes6reloadyyFSiyXEfU_", "Sources/notes/Store.swift", 14, isArtificial: true)], nil
                ),
            ]

    @Test func `what the compiler made is passed over`() throws {
        for (rule, culprit, line, stack, passed) in Self.passedOver {
            let report = try report(stack + loop)
            #expect(report.culprit?.function == culprit, "\(rule)")
            #expect(
                report.culprit?.line == line && report.culprit?.file?.hasPrefix("/src/notes/Sources/") == true,
                "\(rule)")
            if let passed { #expect(try frame(passed.0, in: report).compilerGenerated == passed.1, "\(rule)") }
        }
        let merged = try report([Recorded("$s5notes17readConfigurationySiSSFTm"), Self.open] + loop)
        #expect(try frame("merged readConfiguration(_:)", in: merged).line == nil)
    }

    /// The runtime waits for the global's initializer, which the same thread runs, and the kernel refuses that.
    @Test func `a wait for a global on a CPU is a deadlock`() throws {
        let once = Recorded("_ZN5swift14threading_impl9once_slowERNS0_6once_tEPFvPvES3_")
        let read = Recorded("$s5notes1AO1xSivau", "Sources/notes/Store.swift", 2)
        var cause = StallReport.Cause(
            kind: .cpu, confidence: .certain, onCPUMilliseconds: 300, runQueueMilliseconds: 0, blockedMilliseconds: 0,
            uncertaintyMilliseconds: 0, kernelShare: 0.8)
        cause.summary = cause.sentence
        let spinning = try report([Recorded("syscall"), once, read, once, read] + loop, cause)
        #expect(spinning.cause?.kind == .deadlock && spinning.cause?.confidence == .likely)
        #expect(spinning.cause?.summary.hasPrefix("Waits for a global whose initializer needs") == true)
        // The initializer itself computes.
        let computing = try report([read, once, read] + loop, cause)
        #expect(computing.cause?.kind == .cpu)
    }

    /// Names are not proof: the file of an image of the app may claim any name.
    @Test func `a module that claims to be of the toolchain is not blamed`() throws {
        let report = try report([Recorded("$s10Foundation4saveyyF", "Sources/Foundation/Save.swift", 5)] + loop)
        #expect(report.culprit == nil)
        #expect(
            report.missingCulpritReason
                == "the module of save() is named Foundation, like one of the Swift toolchain's: "
                + "if it is the app's, add it to InApp.includedModules")
    }

    @Test func damagedSymbolTableHasNoCulpritAndAReason() throws {
        var damaged = try report([Recorded("$s5notes4loadyyF", "Sources/notes/Store.swift", 38)] + loop)
        damaged.culprit = nil
        damaged.frames = damaged.frames.map { frame in
            StallReport.Frame(image: frame.image, offset: frame.offset, isInApp: true, kind: frame.kind)
        }
        let symbolication = ReportSymbolication(
            symbolicator: WithoutNames(), functions: FunctionClassifier(InAppSettings()), ownExecutable: nil,
            timeLimit: 1_000_000_000, timeout: 1_000_000_000)
        let named = symbolication.symbolicate(damaged) { _ in }
        #expect(named.culprit == nil)
        #expect(
            named.missingCulpritReason
                == "the function at notes+0x1 is not known: no debug information was found; no symbol table was found")
    }

    private final class WithoutNames: Symbolicating {
        func reason(for image: ImageIdentity) -> String? {
            "no debug information was found; no symbol table was found"
        }
    }
}

/// What most stubs do not look up.
extension Symbolicating {
    func lookUp(_ offset: UInt64, in image: ImageIdentity, deadline: UInt64) -> ResolvedAddress { ResolvedAddress() }
    func symbol(at offset: UInt64, in image: ImageIdentity) -> String? { nil }
    func reason(for image: ImageIdentity) -> String? { nil }
    func releaseMemory() {}
    func calledFunction(before returnAddress: UInt64, in image: ImageIdentity) -> CalledFunction? { nil }
    func function(startingAt address: UInt64, in image: ImageIdentity) -> CalledFunction? { nil }
    func importedSymbol(calledBefore returnAddress: UInt64, in image: ImageIdentity) -> String? { nil }
    func exportedFunction(_ symbol: String, of image: ImageIdentity) -> CalledFunction? { nil }
    func sibling(of function: CalledFunction, in image: ImageIdentity, deadline: UInt64) -> CodeLocation? { nil }
}
