import Testing

@testable import StallReports

@Suite struct ControlRequestTests {
    private static let requests: [ControlRequest] =
        [.state, .watch, .stacks, .tasks]
        + [(1, 1), (300, 100), (10, 50)].compactMap { ProfilePlan(seconds: $0, hertz: $1) }.map(ControlRequest.profile)

    @Test(arguments: requests) func `a request is read as it is sent`(request: ControlRequest) throws {
        #expect(try ControlRequest(Array(request.line.utf8.dropLast())) == request)
    }

    @Test(arguments: [
        ("", "not a request"), ("state", "not a request"), ("stallwatch 1  state", "not a request"),
        ("stallwatch one state", "not a request"), ("stallwatch 2 state", "has version 1"),
        ("stallwatch 1 memory", "does not know"), ("stallwatch 1 state 1", "does not know"),
        ("stallwatch 1 profile", "does not know"), ("stallwatch 1 profile 10", "does not know"),
        ("stallwatch 1 profile 0 50", "takes 1 to 300 seconds"),
        ("stallwatch 1 profile 301 50", "takes 1 to 300 seconds"),
        ("stallwatch 1 profile 10 101", "at 1 to 100 samples"), ("stallwatch 1 profile ten 50", "takes 1 to 300"),
        ("stallwatch 1 profile 10 9999999999999999999999", "takes 1 to 300"), ("\u{0}\u{1}", "not a request"),
    ])
    func `another line is refused with a reason`(line: String, reason: String) {
        do throws(ControlRequest.Fault) {
            _ = try ControlRequest(Array(line.utf8))
            Issue.record("accepted: \(line)")
        } catch {
            #expect(error.message.contains(reason))
        }
    }

    @Test func `an answer over the limit becomes an error`() throws {
        let loop = ControlAnswer.LoopState(
            label: String(repeating: "x", count: 500), turnMilliseconds: nil, thresholdMilliseconds: 1, utilization: 0,
            busyMilliseconds: 0, watchedMilliseconds: 1, stalls: 0, lastStall: nil
        )
        let answer = ControlAnswer(pid: 1, loops: [loop])
        #expect(try #require(ControlAnswer(jsonData: answer.jsonLine())).loops == [loop])
        let short = try #require(ControlAnswer(jsonData: answer.jsonLine(limit: 400)))
        #expect(short.loops == nil && short.error == "the answer has more than 400 bytes")
    }
}
