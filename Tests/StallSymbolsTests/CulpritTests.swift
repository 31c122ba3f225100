import Testing
import TestSupport

@testable import StallReports
@testable import StallSymbols

@Suite struct CulpritRuleTests {
    private func image(_ reason: String? = nil) -> StallReport.Image {
        StallReport.Image(name: "notes", path: "/opt/notes", baseAddress: "0x1", isInApp: true, reason: reason)
    }

    private func frame(
        _ function: String?, line: Int? = nil, isInApp: Bool = true, isDependency: Bool? = nil,
        isRuntimeFrame: Bool? = nil, compilerGenerated: StallReport.GeneratedCode? = nil, symbol: String? = nil,
        kind: StallReport.FrameKind = .code
    ) -> StallReport.Frame {
        StallReport.Frame(
            image: 0, offset: "0x1", function: function, symbol: symbol, file: line.map { _ in "/src/a.swift" },
            line: line, isInApp: isInApp, isDependency: isDependency, isRuntimeFrame: isRuntimeFrame,
            compilerGenerated: compilerGenerated, kind: kind)
    }

    private func culprit(of frames: [StallReport.Frame], reason: String? = nil) -> String? {
        guard case .culprit(let culprit) = StallReport.blame(for: frames, images: [image(reason)]) else { return nil }
        return culprit.function
    }

    @Test func librariesAndRuntimeFramesAreNotBlamed() {
        let frames = [
            frame("memcpy", isInApp: false), frame(nil), frame("thunk for ()", isRuntimeFrame: true), frame("save()"),
            frame("main"),
        ]
        #expect(culprit(of: frames) == "save()")
        #expect(
            StallReport.blame(for: Array(frames.prefix(3)), images: [image()])
                == .none("no function of the app is on the stack"))
    }

    @Test(arguments: [
        ("merged readTheConfiguration(_:)", StallReport.GeneratedCode.merged), ("Item.init(from:)", .synthesized),
        ("Settings.shared.unsafeMutableAddressor", .accessor),
    ])
    func compilerMadeFunctionIsSkipped(name: String, kind: StallReport.GeneratedCode) {
        let frames = [frame(name, line: 3, compilerGenerated: kind), frame("load()", line: 7)]
        #expect(culprit(of: frames) == "load()")
        #expect(
            StallReport.blame(for: [frames[0]], images: [image()])
                == .none("the compiler made all of the app's functions on the stack"))
    }

    /// The runtime deinitializes each object of a graph; what has released the graph is to blame.
    @Test func `a deinitializer that only releases is passed over`() {
        let object = [
            frame("Node.deinit", line: 3, symbol: "$s5notes4NodeCfd"),
            frame("Node.__deallocating_deinit", line: 3, symbol: "$s5notes4NodeCfD"),
            frame("_swift_release_dealloc", isInApp: false, symbol: "_swift_release_dealloc"),
        ]
        let release = frame("swift_release", isInApp: false, symbol: "swift_release")
        let rest = object + [release] + object + [frame("clear()", line: 9, symbol: "$s5notes5clearyyF")]
        #expect(culprit(of: [release] + rest) == "clear()")
        #expect(culprit(of: [frame("free", isInApp: false, symbol: "free"), release] + rest) == "clear()")
        // It does more than to release.
        #expect(culprit(of: [frame("usleep", isInApp: false, symbol: "usleep")] + rest) == "Node.deinit")
        #expect(culprit(of: rest) == "Node.deinit")
        let close = frame("close()", line: 5, symbol: "$s5notes5closeyyF")
        #expect(culprit(of: [release, close] + rest) == "close()")
        #expect(culprit(of: [release] + object) == "Node.deinit")
        let boxed = frame(
            "__swift_destroy_boxed_opaque_existential_1", symbol: "__swift_destroy_boxed_opaque_existential_1")
        let storage = frame(
            "specialized _ContiguousArrayStorage.__deallocating_deinit", isInApp: false,
            symbol: "$ss23_ContiguousArrayStorageCfDSi_Tg5")
        #expect(culprit(of: [release, boxed] + rest) == "clear()")
        #expect(culprit(of: [release, storage] + rest) == "clear()")
    }

    /// What is outward of a guess may not be on the stack; what is inward of it is.
    @Test func `a guessed frame is not blamed`() {
        var guessed = [frame("save()", line: 7), frame("main", line: 9)]
        for index in guessed.indices { guessed[index].isUncertain = true }
        let library = frame("memcpy", isInApp: false)
        let dependency = frame("encode()", isInApp: false, isDependency: true)
        let reason = "the stack is a guess where unwind information is missing: save() is likely"
        #expect(StallReport.blame(for: [library] + guessed, images: [image()]) == .none(reason))
        #expect(
            StallReport.blame(for: [dependency] + guessed, images: [image()]) == .none(reason),
            "what the app asked for is not known")
        #expect(culprit(of: [frame("load()", line: 5)] + guessed) == "load()")
        // Frames were left out, and the rest is proven.
        let outer = [guessed[0], frame("open()", line: 3)]
        #expect(culprit(of: [library] + outer) == "open()")
        #expect(culprit(of: [dependency] + [guessed[0], library]) == "encode()")
    }

    /// An autoclosure has no line, and what evaluates it has not written it.
    @Test func autoclosureIsItsFunctions() {
        let frames = [
            frame("encode(_:)", isInApp: false),
            frame("implicit closure #1 in save()", compilerGenerated: .synthesized), frame("log(_:)", line: 3),
            frame("save()", line: 7), frame("main", line: 9),
        ]
        #expect(culprit(of: frames) == "save()")
        #expect(culprit(of: [frame("describe()", line: 5)] + frames) == "describe()")
        // It escapes: its function is not on the stack.
        #expect(culprit(of: Array(frames.prefix(3)) + [frame("main", line: 9)]) == "log(_:)")
        let nested = frame("specialized implicit closure #2 in implicit closure #1 in save()")
        #expect(culprit(of: [nested] + frames.dropFirst(2)) == "save()")
    }

    /// Without debug information the optimizer may leave only the function that forwards calls to a closure.
    @Test func theForwarderOfAClosureIsBlamed() {
        let prefix = "partial apply for "
        let forwarder = frame(
            prefix + "closure #1 in save()", isRuntimeFrame: true, compilerGenerated: .thunk,
            symbol: "$s5notes4saveyyFyycfU_TA")
        let frames = [frame("usleep", isInApp: false), forwarder, frame("main")]
        #expect(culprit(of: frames, reason: "no debug information was found") == prefix + "closure #1 in save()")
        #expect(culprit(of: [frame("sync()")] + frames, reason: "no debug information was found") == "sync()")
        #expect(
            culprit(of: [frames[0], forwarder, frame("main", line: 9)]) == "main", "its frames would show the closure")
        let other = frame("protocol witness for save()", isRuntimeFrame: true, compilerGenerated: .thunk)
        #expect(culprit(of: [other, frame("main")], reason: "no debug information was found") == "main")
    }

    /// The task of an `async let` has no caller, and its body is an autoclosure.
    @Test func `the function of an async let is blamed`() {
        let body = frame("implicit closure #1 in loadAll()", compilerGenerated: .synthesized)
        #expect(culprit(of: [frame("read", isInApp: false), body]) == "loadAll()")
    }

    @Test func `a function without a line is skipped if others have lines`() {
        let frames = [frame("stub"), frame("load()", line: 7)]
        #expect(culprit(of: frames) == "load()")
        // Where the image has no debug information, no function has a line.
        #expect(culprit(of: frames, reason: "no debug information was found") == "stub")
        #expect(culprit(of: [frame("stub"), frame("load()")]) == "stub")
    }

    @Test func `the outermost dependency is blamed where nothing is the app's`() {
        let dependencies = [
            frame("usleep", isInApp: false), frame("step()", line: 1, isInApp: false, isDependency: true),
            frame("fetch()", line: 2, isInApp: false, isDependency: true), frame("outer", isInApp: false),
        ]
        #expect(culprit(of: dependencies) == "fetch()")
        #expect(culprit(of: dependencies + [frame("query()", line: 9)]) == "query()")
    }

    /// An event loop is on every stack of its thread, and so is what passes an event through the pipeline.
    @Test func `an event loop is blamed only without another dependency`() {
        let loop = [
            frame(
                "ChannelHandlerContext.invokeChannelRead(_:)", line: 4, isInApp: false, isDependency: true,
                symbol: "$s7NIOCore21ChannelHandlerContextC06invokeB4ReadyyAA6NIOAnyVF"),
            frame(
                "SelectableEventLoop.run()", line: 5, isInApp: false, isDependency: true,
                symbol: "$s8NIOPosix19SelectableEventLoopC3runyyKF"),
        ]
        let handler = frame(
            "TLSHandler.channelRead(context:data:)", line: 3, isInApp: false, isDependency: true,
            symbol: "$s6NIOSSL10TLSHandlerC11channelReadyyF")
        #expect(culprit(of: [handler] + loop) == "TLSHandler.channelRead(context:data:)")
        let query = frame(
            "PostgresChannelHandler.channelRead(context:data:)", line: 3, isInApp: false, isDependency: true,
            symbol: "$s11PostgresNIO0A14ChannelHandlerC11channelReadyyF")
        #expect(culprit(of: [query, handler] + loop) == "PostgresChannelHandler.channelRead(context:data:)")
        #expect(culprit(of: loop) == "SelectableEventLoop.run()")
        #expect(culprit(of: [handler] + loop + [frame("serve()", line: 9)]) == "serve()")
    }

    @Test func callersOfTheRunLoopAreNotBlamed() {
        let callout = frame("block", isInApp: false, symbol: "__CFRUNLOOP_IS_CALLING_OUT_TO_A_BLOCK__")
        let main = frame("main", line: 1)
        #expect(culprit(of: [frame("usleep", isInApp: false), callout, main]) == nil)
        #expect(culprit(of: [callout, main, frame("run()", line: 2, kind: .asyncCaller)]) == "run()")
        #expect(culprit(of: [frame("work()", line: 5), callout, main]) == "work()")
    }

    /// Returns a report with a sample of each stack, with its weight.
    private func report(_ stacks: [(frames: [StallReport.Frame], weight: Double)]) throws -> StallReport {
        var report = try StallReport.literal()
        report.images = [image()]
        report.frames = stacks.flatMap(\.frames)
        report.stacks = []
        let sample = try #require(report.samples.first)
        report.samples = []
        for (frames, weight) in stacks {
            let first = report.stacks.reduce(0) { $0 + $1.count }
            report.stacks.append(Array(first..<first + frames.count))
            report.samples.append(sample)
            report.samples[report.samples.count - 1].stack = report.stacks.count - 1
            report.samples[report.samples.count - 1].weightMilliseconds = weight
        }
        return report
    }

    /// What a line calls differs from look to look; what another releases is always the same.
    @Test func `the line is the one with the most time`() throws {
        let report = try report([
            ([frame("rebuild()", line: 27)], 60),
            ([frame("rehash()", isInApp: false), frame("rebuild()", line: 25)], 50),
            ([frame("copy()", isInApp: false), frame("rebuild()", line: 25)], 50), ([frame("main")], 40),
        ])
        let dominant = try #require(report.dominantStack)
        guard case .culprit(let culprit) = dominant.blame else { return #expect(Bool(false)) }
        #expect(culprit.line == 25 && dominant.stack == 1)
        #expect(abs(dominant.share - 0.8) < 0.001)
    }

    @Test func `without a half the function around a closure is blamed for both`() throws {
        let closure = [frame("closure #1 in drain()", line: 51), frame("drain()", line: 50)]
        func blamed(_ weight: Double) throws -> String? {
            let report = try report([
                (closure, weight), ([frame("drain()", line: 52)], 30), ([frame("main")], 70 - weight),
            ])
            guard case .culprit(let culprit) = report.dominantStack?.blame else { return nil }
            return culprit.function
        }
        #expect(try blamed(45) == "drain()")
        #expect(try blamed(60) == "closure #1 in drain()")
    }

    @Test func `the share of a function includes the time of its closures`() throws {
        let report = try report([
            ([frame("drain()", line: 52)], 52),
            ([frame("closure #1 in drain()", line: 51), frame("drain()", line: 50)], 20),
            (
                [
                    frame("closure #1 in closure #2 in drain()", line: 55), frame("closure #2 in drain()", line: 54),
                    frame("drain()", line: 50),
                ], 28
            ),
        ])
        let dominant = try #require(report.dominantStack)
        guard case .culprit(let culprit) = dominant.blame else { return #expect(Bool(false)) }
        #expect(culprit.function == "drain()" && culprit.line == 52 && abs(dominant.share - 1) < 0.001)
    }

    @Test func `the line that calls a closure has its time`() throws {
        let report = try report([
            ([frame("drain()", line: 52)], 23), ([frame("drain()", line: 53)], 30),
            ([frame("closure #1 in drain()", line: 51), frame("drain()", line: 50)], 47),
        ])
        guard case .culprit(let culprit) = report.dominantStack?.blame else { return #expect(Bool(false)) }
        #expect(culprit.function == "drain()" && culprit.line == 50 && report.dominantStack?.stack == 2)
    }

    /// A function that starts the loop has not called its timers' closures.
    @Test func `the function around a callout is not blamed`() throws {
        let callout = frame(
            "timer", isInApp: false, symbol: "__CFRUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION__")
        func timer(_ number: Int) -> [StallReport.Frame] {
            [frame("closure #\(number) in main()", line: number), callout, frame("main()", line: 9)]
        }
        let report = try report([(timer(1), 45), (timer(2), 40), ([frame("other()")], 15)])
        guard case .culprit(let culprit) = report.dominantStack?.blame else { return #expect(Bool(false)) }
        #expect(culprit.function == "closure #1 in main()")
    }

    @Test func `of a loop that spins, the monitor's observer is not what it called`() throws {
        func symbol(_ kind: String) -> String { "__CFRUNLOOP_IS_\(kind)__" }
        var report = try StallReport.literal()
        (report.kind, report.activity) = (.spinning, .init(turnsPerSecond: 9))
        report.images = [image()]
        report.frames = [
            frame("closure #3", isInApp: false, symbol: "$s10StallWatch13RunLoopSourceCfU_"),
            frame("observer", isInApp: false, symbol: symbol("CALLING_OUT_TO_AN_OBSERVER_CALLBACK_FUNCTION")),
            frame("submitAgain()", line: 3), frame("drain", isInApp: false),
            frame("main queue", isInApp: false, symbol: symbol("SERVICING_THE_MAIN_DISPATCH_QUEUE")),
        ]
        report.stacks = [[0, 1], [2, 3, 4]]
        let sample = try #require(report.samples.first)
        report.samples = [sample, sample]
        (report.samples[0].weightMilliseconds, report.samples[1].weightMilliseconds) = (600, 200)
        report.samples[1].stack = 1
        #expect(report.dominantStack?.stack == 1)
        report.frames[0].symbol = "$s5notes6ObservC5firedyyF"
        #expect(report.dominantStack?.stack == 1, "no function of the app is in the observer")
        report.frames[0].isInApp = true
        #expect(report.dominantStack?.stack == 0)
    }

    /// A GTK program's `main` runs the loop, and no more.
    @Test(arguments: [
        "g_main_context_dispatch", "g_main_loop_run", "uv_run", "event_base_loop", "ev_run",
        "_ZN10QEventLoop4execE6QFlagsINS_17ProcessEventsFlagEE",
    ])
    func callersOfOtherLoopsAreNotBlamed(loop: String) {
        let run = frame(loop, isInApp: false, symbol: loop)
        #expect(culprit(of: [frame("gtk_css_parse", isInApp: false), run, frame("main", line: 1)]) == nil)
        #expect(culprit(of: [frame("onClick", line: 5), run, frame("main", line: 1)]) == "onClick")
        #expect(culprit(of: [run, frame("save()", line: 5), run, frame("main", line: 1)]) == "save()", "its own loop")
        let callout = frame(
            "timer", isInApp: false, symbol: "__CFRUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION__")
        #expect(culprit(of: [run, frame("showDialog()", line: 5), callout, frame("main", line: 1)]) == "showDialog()")
    }

    /// A function further out does not stall, so it is not the culprit.
    @Test func unnamedFrameOfStrippedImageEndsTheSearch() {
        let frames = [frame(nil), frame("main")]
        #expect(
            StallReport.blame(for: frames, images: [image("no symbol table was found")])
                == .none("the function at notes+0x1 is not known: no symbol table was found"))
        // If all names are known, the frame is a stub of the linker.
        #expect(culprit(of: frames) == "main")
    }

    /// As in a report that is written before all names are found.
    @Test func `a frame for whose name the time was short ends the search`() {
        var unnamed = frame(nil)
        unnamed.reason = "the time limit was reached"
        let frames = [unnamed, frame("main", line: 9)]
        #expect(
            StallReport.blame(for: frames, images: [image()])
                == .none("the function at notes+0x1 is not known: the time limit was reached"))
        #expect(culprit(of: [frame("save()", line: 7)] + frames) == "save()")
        unnamed.reason = "the debug information does not cover it"
        #expect(culprit(of: [unnamed, frames[1]]) == "main", "a stub of the linker")
    }
}

/// The workers of a pool in a named report.
@Suite struct ReportWorkersTests {
    private static let frames = [
        frame("_dispatch_worker_thread", isInApp: false), frame("_dispatch_semaphore_wait_slow", isInApp: false),
        frame("save", isInApp: true), frame("load", isInApp: true), frame(nil, isInApp: true),
        frame("_dispatch_root_queue_drain", isInApp: true),
        frame("_ZN5swift34runJobInEstablishedExecutorContextEPNS_3JobE", isInApp: false),
        frame("_dispatch_lane_serial_drain", isInApp: false),
    ]
    private let idle = [1, 0], saving = [2, 0], loading = [3, 0], main = [2], unnamed = [4]

    private static func frame(_ symbol: String?, isInApp: Bool) -> StallReport.Frame {
        StallReport.Frame(image: 0, offset: "0x1", function: symbol, symbol: symbol, isInApp: isInApp, kind: .code)
    }

    /// As with Debian's libraries, which have no names of functions that they do not export.
    @Test func `without names, workers are threads that dispatch has started`() throws {
        var report = try StallReport.literal()
        let names = ["demo", "libdispatch.so", "libc.so.6"]
        report.images = names.map { StallReport.Image(name: $0, path: "/lib/" + $0, baseAddress: "0x0") }
        report.frames = names.indices.map { StallReport.Frame(image: $0, offset: "0x1", isInApp: $0 == 0, kind: .code) }
        // The main thread runs a block; a worker computes; a thread of the app does, too.
        report.stacks = [[0, 1, 0, 2], [0, 1, 2, 2], [0, 2]]
        report.samples = [report.samples[0]]
        report.samples[0].workers = report.stacks.indices.map {
            StallReport.WorkerGroup(stack: $0, threads: [.init(id: Int32($0 + 1), name: nil)])
        }
        report.sortWorkers()
        #expect(report.samples[0].workers?.map(\.stack) == [1])
        #expect(report.samples[0].stack == 1)
    }

    /// Returns the threads of each group after sorting, when thread 1, 2 and so on have these stacks.
    private func sorted(
        _ stacks: [(frames: [Int], threads: Int)], of pool: StallReport.LoopKind? = nil
    ) throws -> (groups: [Int], stack: Int?) {
        var report = try StallReport.literal()
        if let pool { report.loop.kind = pool }
        report.frames = Self.frames
        report.stacks = stacks.map(\.frames)
        report.samples = [report.samples[0]]
        report.samples[0].workers = stacks.indices.map { stack in
            StallReport.WorkerGroup(
                stack: stack, threads: (0..<stacks[stack].threads).map { .init(id: Int32($0 + 1), name: nil) })
        }
        report.sortWorkers()
        return ((report.samples[0].workers ?? []).compactMap(\.stack), report.samples[0].stack)
    }

    @Test func `the largest group of busy workers is first`() throws {
        let result = try sorted([(saving, 1), (idle, 5), (loading, 2)])
        #expect(result.groups == [2, 0, 1] && result.stack == 2, "\(result)")
        #expect(try sorted([([1, 5], 5), (loading, 1)]).groups == [1, 0], "a linked library's worker is not busy")
        #expect(try sorted([(main, 3), (unnamed, 2), (saving, 1)]).groups == [2], "others are left out")
        #expect(try sorted([(unnamed, 2), (main, 3)]).groups == [1, 0], "without any name, each may be a worker")
    }

    @Test func `a worker of another queue is none of the task pool`() throws {
        let queue = [3, 7, 0], task = [2, 6, 0], taskOfQueue = [3, 6, 7, 0]
        let stacks = [(queue, 5), (task, 2), (idle, 1), (taskOfQueue, 3), (loading, 4)]
        #expect(try sorted(stacks, of: .cooperativePool).groups == [1])
        #expect(try sorted(stacks, of: .dispatchQueue).groups.count == 5)
        #expect(try sorted([(queue, 5), (idle, 1)], of: .cooperativePool).groups == [0, 1], "no name tells of a task")
    }
}
