import Testing
import TestSupport

@testable import LinuxSupport
@testable import StackCapture
@testable import StallReports
@testable import StallWatch

@Suite struct ReportBuilderTests {
    private let app = LoadedImage.stub(
        path: "/opt/notes/bin/notes", addresses: 0x10000..<0x20000, buildID: [0x3b, 0x1e], isExecutable: true
    )
    private let libc = LoadedImage.stub(path: "/lib/libc.so.6", addresses: 0x40000..<0x50000, buildID: [0x93, 0xd1])
    private let foundation = LoadedImage.stub(
        path: "/usr/lib/swift/linux/libFoundation.so", addresses: 0x60000..<0x70000)
    private var images: ImageList { ImageList([app, libc, foundation]) }

    private let builder = ReportBuilder.stub([
        "notes": [0x100: "$s5notes9NoteStoreC4saveyyAA4NoteVF", 0x200: "$s5notes3runyyF", 0x300: "main"],
        "libc.so.6": [0x10: "pthread_mutex_lock"],
        "libFoundation.so": [0x20: "__CFRUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION__"],
    ])

    private func sample(
        _ addresses: [UInt64], at milliseconds: UInt64 = 250, isValid: Bool = true
    ) -> StallRecord.Sample {
        StallRecord.Sample(
            age: milliseconds * 1_000_000, isValid: isValid, stack: .success(.stub(addresses)), images: images
        )
    }

    private func failure(_ reason: CaptureFailure) -> StallRecord.Sample {
        StallRecord.Sample(age: 0, isValid: true, stack: .failure(reason), images: images)
    }

    /// A thread blocked on a mutex in NoteStore.save(_:), called by a timer.
    private let locked: [UInt64] = [0x40010, 0x10100, 0x60020, 0x10300]

    // MARK: Values of the record

    @Test func aReportHasTheRecordsValues() {
        let report = builder.report(of: .stub(id: "one", state: .ongoing))
        #expect(report.schemaVersion == StallReport.currentSchemaVersion)
        #expect(report.id == "one")
        #expect(report.state == .ongoing)
        #expect(report.durationMilliseconds == 400)
        #expect(report.thresholdMilliseconds == 250)
        #expect(report.monitor.watchdogLateMilliseconds == 0.2)
        #expect(report.monitor.version == StallWatchVersion.current)
        #expect(report.metadata == ["version": "1.4.2"])
        #expect(report.loop.label == "main")
        #expect(report.samples.isEmpty)
        #expect(report.culprit == nil)
        #expect(report.callout == nil)
    }

    /// The stack reaches the thread's first function by a guess, which may have skipped others.
    @Test func `a stack with a guess is not complete`() throws {
        var stack = CapturedStack.stub([0x10100], method: .read, state: .blocked)
        stack.incompleteReason = "where it was called from is a guess"
        #expect(stack.isComplete)
        let record = StallRecord.stub(samples: [
            StallRecord.Sample(age: 250_000_000, isValid: true, stack: .success(stack), images: images)
        ])
        let sample = try #require(builder.report(of: record).samples.first)
        #expect(!sample.isComplete && sample.reason == "where it was called from is a guess")
    }

    @Test func aSampleHasTheCapturesCostAndState() throws {
        var stack = CapturedStack.stub([0x10100], method: .ptrace, state: .uninterruptible)
        stack.isComplete = false
        stack.incompleteReason = "the stack is deeper than the limit"
        stack.heldNanoseconds = 12_500
        stack.captureNanoseconds = 180_000
        let record = StallRecord.stub(samples: [
            StallRecord.Sample(age: 250_400_000, isValid: false, stack: .success(stack), images: images)
        ])
        let sample = try #require(builder.report(of: record).samples.first)
        #expect(sample.atMilliseconds == 250.4)
        #expect(sample.method == .ptrace)
        #expect(sample.threadState == .uninterruptible)
        #expect(sample.isValid == false)
        #expect(sample.isComplete == false)
        #expect(sample.reason == "the stack is deeper than the limit")
        #expect(sample.heldMicroseconds == 12.5)
        #expect(sample.captureMicroseconds == 180)
    }

    @Test func aSampleWithoutAStackHasAReason() throws {
        let report = builder.report(of: .stub(samples: [failure(.noSuchThread)]))
        let sample = try #require(report.samples.first)
        #expect(sample.stack == nil)
        #expect(sample.reason == "the thread has ended")
        #expect(sample.method == nil)
        #expect(sample.isComplete == false)
        #expect(report.culprit == nil)
    }

    // MARK: Names

    @Test func framesAreNamedByImageAndOffset() {
        let report = builder.report(of: .stub(samples: [sample(locked)]))
        #expect(
            report.functionNames(of: report.samples[0]) == [
                "pthread_mutex_lock", "NoteStore.save(_:)",
                "__CFRUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION__", "main",
            ]
        )
        #expect(report.frames[1].symbol == "$s5notes9NoteStoreC4saveyyAA4NoteVF")
        #expect(report.frames.map(\.offset) == ["0x10", "0x100", "0x20", "0x300"])
        #expect(report.frames.map(\.isInApp) == [false, true, false, true])
        #expect(report.images.map(\.name) == ["libc.so.6", "notes", "libFoundation.so"])
        #expect(report.images.map(\.baseAddress) == ["0x40000", "0x10000", "0x60000"])
        #expect(report.images.map(\.buildID) == ["93d1", "3b1e", nil])
    }

    @Test func aReturnAddressIsNamedByItsCall() {
        let stack = CapturedStack(
            method: .read, threadState: .blocked, frames: [.init(address: 0x10101, isExact: false)], isComplete: true,
            heldNanoseconds: 0, captureNanoseconds: 0
        )
        let record = StallRecord.stub(samples: [
            StallRecord.Sample(age: 0, isValid: true, stack: .success(stack), images: images)
        ])
        #expect(builder.report(of: record).frames.map(\.offset) == ["0x100"])
    }

    @Test func anUnnamedFrameKeepsItsOffset() {
        let report = builder.report(of: .stub(samples: [sample([0x10555, 0x99999])]))
        #expect(report.frames[0].function == nil)
        #expect(report.frames[0].isInApp)
        #expect(report.frames[1].image == nil)
        #expect(report.frames[1].offset == "0x99999")
        #expect(!report.frames[1].isInApp)
        #expect(report.functionNames(of: report.samples[0]) == ["notes+0x555", "0x99999"])
    }

    // MARK: Interning

    @Test func equalStacksFramesAndImagesAreStoredOnce() {
        let other: [UInt64] = [0x10200, 0x60020, 0x10300]
        let report = builder.report(of: .stub(samples: [sample(locked), sample(other), sample(locked), sample(other)]))
        #expect(report.samples.map(\.stack) == [0, 1, 0, 1])
        #expect(report.stacks == [[0, 1, 2, 3], [4, 2, 3]])
        #expect(report.frames.count == 5)
        #expect(report.images.count == 3)
    }

    @Test func aRecursionIsOneFrameManyTimes() {
        let report = builder.report(of: .stub(samples: [sample([0x10200, 0x10200, 0x10200, 0x10300])]))
        #expect(report.stacks == [[0, 0, 0, 1]])
        #expect(report.frames.count == 2)
    }

    @Test func anEmptyStackIsAStack() {
        let report = builder.report(of: .stub(samples: [sample([])]))
        #expect(report.stacks == [[]])
        #expect(report.culprit == nil)
    }

    // MARK: The culprit

    @Test func theCulpritIsTheInnermostFunctionOfTheApp() {
        let report = builder.report(of: .stub(samples: [sample(locked)]))
        #expect(report.culprit == StallReport.Culprit(function: "NoteStore.save(_:)", image: "notes", share: 1))
        #expect(report.callout == .timer)
    }

    /// The shortest time has the most samples.
    @Test func theFunctionWithTheMostTimeIsTheCulprit() {
        let report = builder.report(
            of: .stub(samples: [sample(locked, at: 100)] + [320, 340, 360, 380].map { sample([0x10200], at: $0) })
        )
        #expect(report.culprit?.function == "NoteStore.save(_:)")
        #expect(report.culprit?.share == 0.525)
        #expect(report.samples.map(\.weightMilliseconds) == [210, 120, 20, 20, 30])
        #expect(report.headline == "main stalled for 400 ms, 53 % of it in NoteStore.save(_:) (timer)")
    }

    /// Both callees belong to the same function of the app, which has more time than the longest stack.
    @Test func theTimeInAFunctionsCalleesCountsTogether() {
        let waiting: [UInt64] = [0x40010, 0x10100, 0x60020, 0x10300]
        let computing: [UInt64] = [0x10100, 0x60020, 0x10300]
        let report = builder.report(
            of: .stub(samples: [sample(waiting, at: 60), sample([0x10200], at: 180), sample(computing, at: 300)])
        )
        #expect(report.samples.map(\.weightMilliseconds) == [120, 120, 160])
        #expect(report.culprit == StallReport.Culprit(function: "NoteStore.save(_:)", image: "notes", share: 0.7))
    }

    @Test func `among functions with equal time, the first is the culprit`() {
        let report = builder.report(of: .stub(samples: [sample([0x10200], at: 100), sample(locked, at: 300)]))
        #expect(report.culprit?.function == "run()")
        #expect(report.culprit?.share == 0.5)
    }

    @Test func invalidSamplesBlameNoFunction() {
        let invalid = sample([0x10200], isValid: false)
        let both = builder.report(of: .stub(samples: [invalid, invalid, sample(locked), failure(.refused(errno: 1))]))
        #expect(both.culprit?.function == "NoteStore.save(_:)")
        let only = builder.report(of: .stub(samples: [invalid, failure(.refused(errno: 1))]))
        #expect(only.culprit == nil)
        #expect(only.missingCulpritReason == "the turn had ended before a stack was captured")
        #expect(only.callout == nil)
        let none = builder.report(of: .stub(samples: [failure(.refused(errno: 1))]))
        #expect(Fingerprint(only) == Fingerprint(none))
        #expect(Fingerprint(only) != Fingerprint(both))
    }
}

@Suite struct FingerprintTests {
    private func fingerprint(_ paths: [[String]], loop: StallReport.LoopKind = .runLoop) -> String {
        Fingerprint(loop: loop, paths: paths.map { $0.map { Fingerprint.Place(name: $0, isFunction: true) } }).text
    }

    /// The published test vectors of FNV-1a: stored fingerprints are kept for years, so the hash must never change.
    @Test(arguments: [
        ("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8),
    ])
    func theHashIsFNV1a(text: String, hash: UInt64) {
        #expect(Fingerprint.hash(text.utf8) == hash)
    }

    /// A fixed value: a change would invalidate all stored fingerprints.
    @Test func aFingerprintIsTheSameInEveryVersion() {
        #expect(
            fingerprint([["save(_:)", "main"]])
                == hexadecimal(Fingerprint.hash("1\nrunLoop\nmain\nsave(_:)".utf8), width: 16))
        #expect(fingerprint([["save(_:)", "main"]]).count == 16)
    }

    @Test func pathAndLoopDistinguishStalls() {
        let base = fingerprint([["a()", "b()"]])
        #expect(base != fingerprint([["b()", "a()"]]))
        #expect(base != fingerprint([["a()"]]))
        #expect(base != fingerprint([["a()", "b()"]], loop: .dispatchQueue))
        #expect(fingerprint([["closure #1 in a()"]]) != fingerprint([["closure #2 in a()"]]))
    }

    @Test func theDepthOfARecursionDoesNotCount() {
        #expect(fingerprint([["f()", "f()", "f()", "a()"]]) == fingerprint([["f()", "a()"]]))
        #expect(fingerprint([["f()", "g()", "f()", "g()", "a()"]]) == fingerprint([["f()", "g()", "a()"]]))
    }

    /// What the compiler made alone does not count.
    @Test(
        arguments: [
            ("specialized save<A>(_:)", "save<A>(_:)"), ("specialized specialized f()", "f()"), ("merged f()", "f()"),
            ("partial apply for closure #1 in f()", "closure #1 in f()"), ("work.cold", "work"),
            ("work.constprop.0", "work"),
            ("work.llvm.1234", "work"), ("K.v.getter", "K.v.getter"), ("Store.part", "Store"),
            ("NoteStore.save(_:)", "NoteStore.save(_:)"),
            ("std::vector<int>::push_back(int const&)", "std::vector<int>::push_back(int const&)"),
            ("parse(char const*) [clone .isra.0] [clone .cold]", "parse(char const*)"),
            ("sum(int) [clone ._omp_fn.0] [clone .cold]", "sum(int) [clone ._omp_fn.0]"),
            ("Store::operator[](int)", "Store::operator[](int)"),
            ("thunk for @escaping @callee_guaranteed () -> ()", nil),
            ("protocol witness for P.f() in conformance S", nil), ("outlined copy of Any", nil),
            ("dispatch thunk of C.f()", nil),
        ] as [(String, String?)])
    func compilerSuffixesAndPrefixesAreRemoved(name: String, expected: String?) {
        #expect(Fingerprint.functionName(name) == expected)
    }

    @Test func theInnermostFramesOfABusyTurnDoNotCount() {
        let busy = [["a()", "render()"], ["b()", "render()"], ["c()", "render()"]]
        #expect(fingerprint(busy) == fingerprint([["render()"]]))
        #expect(fingerprint(busy) == fingerprint([busy[2], busy[0], busy[1]]))
        let mostlyInA = [["a()", "render()"], ["a()", "render()"], ["b()", "render()"]]
        #expect(fingerprint(mostlyInA) == fingerprint([["a()", "render()"]]))
        #expect(fingerprint([["a()"], ["b()"]]) == fingerprint([["a()"]]), "nothing in common: the first counts")
    }

    /// The optimizer moves a closure's code into the function that forwards calls to it.
    @Test func closuresOfWhichOnlyTheForwarderIsLeftDiffer() throws {
        func fingerprint(_ function: String) throws -> Fingerprint {
            var report = try #require(fixture())
            for index in report.frames.indices where report.frames[index].isInApp {
                report.frames[index].function = "partial apply for closure #1 in \(function)"
                report.frames[index].compilerGenerated = .thunk
                report.frames[index].isRuntimeFrame = true
            }
            return Fingerprint(report)
        }
        #expect(try fingerprint("save()") != fingerprint("reload()"))
    }

    /// An unread pipe and a block that submits itself again show the same functions of the loop.
    @Test func `loops that spin for different reasons differ`() throws {
        func fingerprint(_ kind: StallKind, descriptor: String? = nil, isModeEmpty: Bool? = nil) throws -> String {
            var report = try #require(fixture())
            report.kind = kind
            var activity = StallReport.Activity(turnsPerSecond: 1_000)
            (activity.readyDescriptor, activity.isModeEmpty) = (descriptor, isModeEmpty)
            if kind == .spinning { report.activity = activity }
            return Fingerprint(report).text
        }
        let all = [
            try fingerprint(.stall), try fingerprint(.starvation), try fingerprint(.spinning),
            try fingerprint(.spinning, descriptor: "descriptor 7, pipe:[4711]"),
            try fingerprint(.spinning, descriptor: "descriptor 7, anon_inode:[timerfd]"),
            try fingerprint(.spinning, descriptor: "descriptor 7, /run/fifo"),
            try fingerprint(.spinning, isModeEmpty: true),
        ]
        #expect(Set(all).count == all.count)
        #expect(try fingerprint(.spinning, descriptor: "descriptor 12, pipe:[815]") == all[3])
        #expect(all[0] == Fingerprint(try #require(fixture())).text, "a stall's is kept for years")
    }

    @Test func `stalls without a stack differ by their loops and waits`() throws {
        func text(_ label: String, _ call: String) throws -> String {
            var report = try #require(fixture())
            report.samples = []
            report.loop.label = label
            var cause = StallReport.Cause.fixture(kind: .io, summary: "")
            cause.systemCall = .init(number: 0, name: call, target: nil)
            report.cause = cause
            return Fingerprint(report).text
        }
        #expect(try text("db", "read") == text("db", "read"))
        #expect(try text("db", "read") != text("net", "read"))
        #expect(try text("db", "read") != text("db", "fsync"))
    }

    @Test func `a guessed frame does not count`() throws {
        var report = try #require(fixture())
        let apps = report.frames.indices.filter { report.frames[$0].isInApp }
        for index in apps { report.frames[index].isUncertain = true }
        let before = Fingerprint(report)
        for index in apps { report.frames[index].function = "other()" }
        #expect(Fingerprint(report) == before)
    }

    @Test func addressesDoNotCount() throws {
        var report = try #require(fixture())
        let before = Fingerprint(report)
        for index in report.images.indices { report.images[index].baseAddress = "0x7f0000000000" }
        for index in report.frames.indices { report.frames[index].offset = "0x\(index)" }
        #expect(Fingerprint(report) == before)
    }

    @Test func withoutNamesTheBuildIDCounts() throws {
        var report = try #require(fixture())
        for index in report.frames.indices { report.frames[index].function = nil }
        let stripped = Fingerprint(report)
        #expect(stripped != Fingerprint(try #require(fixture())))
        for index in report.images.indices { report.images[index].baseAddress = "0x7f0000000000" }
        #expect(Fingerprint(report) == stripped)
        report.images[0].buildID = "ff"
        #expect(Fingerprint(report) != stripped)
    }

    @Test func functionsOutsideTheCalloutDoNotCount() throws {
        var report = try #require(fixture())
        let inside = Fingerprint(report)
        let callout = StallReport.Frame(
            image: 0, offset: "0x1", function: nil, symbol: "__CFRUNLOOP_IS_CALLING_OUT_TO_A_BLOCK__", isInApp: false,
            kind: .code
        )
        let outside = StallReport.Frame(
            image: 0, offset: "0x2", function: "runTheLoopSomehow()", symbol: nil, isInApp: true, kind: .code
        )
        report.stacks[0] += [report.frames.count, report.frames.count + 1]
        report.frames += [callout, outside]
        #expect(Fingerprint(report) == inside)
    }

    private func fixture() -> StallReport? {
        Reporter.Settings.fixture().builder().report(of: .fixture(function: 3))
    }
}
