import Glibc
import StallReports
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallWatch

@Suite struct ControlServiceTests {
    private let directory = TemporaryDirectory.ofTest()

    @Test func `a slow request delays no other client`() throws {
        let isAnswered = Semaphore()
        let service = try ControlService(directory: directory.path) { _ in
            ControlAnswer(pid: 1, loops: [])
        } slowAnswer: { _ in
            isAnswered.wait(until: endOfPatience)
            return ControlAnswer(pid: 1)
        }
        defer {
            service.close()
            service.finish(until: endOfPatience)
        }
        let slow = try #require(send(.stacks))
        defer { close(slow) }
        for _ in 0..<3 { #expect(try #require(send(.state).flatMap(answer)).loops?.isEmpty == true) }
        let second = try #require(send(.stacks).flatMap(answer))
        #expect(second.error == "another client's stacks is not finished: try again when it is")
        isAnswered.post()
        let first = try #require(answer(slow))
        #expect(first.error == nil && first.loops == nil)
    }

    @Test(.timeLimit(.minutes(10))) func `the end of a monitor waits a bounded time for an answer`() throws {
        let gate = Semaphore()
        defer { gate.post() }
        let service = try ControlService(directory: directory.path) { _ in
            ControlAnswer(pid: 1)
        } slowAnswer: { _ in
            gate.pass()
            return ControlAnswer(pid: 1)
        }
        let client = try #require(send(.stacks))
        defer { close(client) }
        // The request has arrived, as one behind it is refused.
        #expect(try #require(send(.stacks).flatMap(answer)).error != nil)
        service.close()
        service.finish(until: monotonicNow() + 20_000_000)
    }

    private func send(_ request: ControlRequest) -> Int32? {
        let path = "\(directory.path)/\(ControlRequest.socketName(ofProcess: getpid()))"
        guard case .connected(let descriptor) = UnixSocket.connect(to: path) else { return nil }
        UnixSocket.send(Array(request.line.utf8), to: descriptor, until: endOfPatience)
        return descriptor
    }

    private func answer(_ descriptor: Int32) -> ControlAnswer? {
        let deadline = endOfPatience
        let bytes = UnixSocket.receive(from: descriptor, limit: ControlAnswer.maximumBytes, until: deadline)
        return bytes.flatMap { ControlAnswer(jsonData: $0) }
    }
}
