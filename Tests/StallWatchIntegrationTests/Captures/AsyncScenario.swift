import Testing

/// A stall in async code (Tests/Support/AsyncScenarios) with a known chain of callers.
struct AsyncScenario: Sendable, CustomTestStringConvertible {
    /// The scenario's name in the library.
    var name: String
    /// Parts of the async callers' names, nearest first, up to the scenario's closure and without the compiler's
    /// thunks.
    private let callers: [String]
    /// The callers in optimized builds, where a function inlined into its caller has no frame.
    private let optimized: [String]

    init(_ name: String, _ callers: [String], optimized: [String]? = nil) {
        self.name = name
        self.callers = callers
        self.optimized = optimized ?? callers
    }

    /// Returns the callers that a capture of that build must have.
    func callers(in build: AsyncBuild) -> [String] {
        switch build {
        case .debug, .debugStripped: callers
        case .release, .releaseStripped: optimized
        }
    }

    var testDescription: String { name }

    static let all: [AsyncScenario] = [
        .init("MainActor, three deep", ["Model.level2", "Model.level1"]),
        .init("nonisolated, three deep", ["Plain.p2", "Plain.p1"]),
        .init("detached", ["Plain.p2", "Plain.p1"]),
        .init("a callee that never suspends", ["Plain.callsNeverSuspends"]),
        .init("checked continuation", ["continuation"], optimized: []),
        .init("task group child", ["Plain.p2"]),
        .init("async let child", ["Plain.p2"]),
        .init(
            "actor, existential, generic, closure", ["generic", "RealWorker.go", "Counter.run"],
            optimized: ["RealWorker.go"]
        ),
        .init("actor hop", []),
        .init("AsyncStream.map", ["AsyncMapSequence.Iterator.next", "stream"], optimized: ["stream"]),
        .init("after a sleep", ["callsSleeper"]),
        .init("MainActor.run", ["onMain"], optimized: []),
        .init("many arguments", ["callsMany"]),
        .init(
            "task-local value",
            ["Plain.p2", "closure #1 in taskLocal", "TaskLocal.withValueImpl", "TaskLocal.withValue", "taskLocal"],
            optimized: ["Plain.p2", "taskLocal"]
        ),
        .init(
            "cancellation handler",
            ["Plain.p2", "closure #1 in cancellation", "withTaskCancellationHandler", "cancellation"]
        ),
        .init("recursion, ten deep", Array(repeating: "recursive", count: 10)),
        .init("throwing", ["Plain.throwing2", "catches"]),
        .init("immediate task", []),
        .init("task in a task", ["Plain.p2"]),
        .init("unsafe continuation", []),
    ]
}
