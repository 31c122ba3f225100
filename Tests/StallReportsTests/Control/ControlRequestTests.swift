import Testing

@testable import StallReports

@Suite struct ControlRequestTests {
    @Test(arguments: ControlRequest.allCases) func `a request is read as it is sent`(request: ControlRequest) throws {
        #expect(try ControlRequest(Array(request.line.utf8.dropLast())) == request)
    }

    @Test(arguments: [
        ("", "not a request"), ("state", "not a request"), ("stallwatch 1  state", "not a request"),
        ("stallwatch one state", "not a request"), ("stallwatch 2 state", "has version 1"),
        ("stallwatch 1 memory", "does not know"), ("\u{0}\u{1}", "not a request"),
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
            stalls: 0, lastStall: nil
        )
        let answer = ControlAnswer(pid: 1, loops: [loop])
        #expect(try #require(ControlAnswer(jsonData: answer.jsonLine())).loops == [loop])
        let short = try #require(ControlAnswer(jsonData: answer.jsonLine(limit: 400)))
        #expect(short.loops == nil && short.error == "the answer has more than 400 bytes")
    }
}
