import StallWatch
import TailCalls

extension Scenario {
    /// Stalls in functions that leave no frame in an optimized build.
    static let tailCallScenarios: [Scenario] = [
        .stallingOften(
            "tail-calls", "functions stall that end in a call, or share their code with another one", times: 1.2,
            ExpectedReport(
                mode: ExpectedReport.defaultMode, callout: .timer, cause: "sleep",
                count: tailCalls.count, stacks: tailCalls.map(\.stack))
        ) { context in
            let before = unit
            unit = UInt32(context.stall.milliseconds * 1_000 / 120)
            defer { unit = before }
            var injected: [Duration] = []
            for (_, call) in tailCalls {
                injected.append(await MainLoop.timer { tailCallResults &+= call() })
                await pause(.milliseconds(20))
            }
            return injected
        }
    ]

    /// Calls that take 120 units, with the functions that have to be on their stacks, innermost first.
    private static let tailCalls: [(stack: [String], call: @Sendable () -> Int)] = [
        (
            ["nap()"],
            {
                nap()
                return 1
            }
        ),
        (["countDown(_:_:)"], { Int(countDown(10, 120 &* unit)) &+ 1 }),
        (["doze(_:)", "hashPassword(_:)"], { hashPassword(10) &+ 1 }),
        (["doze(_:)", "load(_:_:)"], { load("abc") { doze($0) } &+ 1 }),
        (["doze(_:)", "Archive.compact()"], { Archive().compact() &+ 1 }),
        (["doze(_:)", "static Archive.vacuum(_:)"], { Archive.vacuum(11) &+ 1 }),
        (["doze(_:)", "importUsers(_:)"], { importUsers(10) &+ 1 }),
        (["doze(_:)", "importGroups(_:)"], { importGroups(11) &+ 1 }),
        (["doze(_:)", "indexAll<A>(_:_:)"], { indexAll("a", 10) &+ 1 }),
        (["doze(_:)", "searchAll<A>(_:_:)"], { searchAll(7, 11) &+ 1 }),
        (
            ["restUsers()"],
            {
                restUsers()
                return 1
            }
        ),
        (
            ["restGroups()"],
            {
                restGroups()
                return 2
            }
        ),
        (["doze(_:)", "Shelf.checksum.getter"], { Shelf().checksum &+ 1 }),
        (["doze(_:)", "Shelf.digest.getter"], { Shelf().digest &+ 1 }),
    ]
}

/// What the calls return, so that they are not the last thing that their callers do.
nonisolated(unsafe) private var tailCallResults = 0
