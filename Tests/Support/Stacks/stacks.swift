// Deep stacks in Swift, Foundation and Dispatch. Each `stack_` function is the first function of a thread and never
// returns.

import Dispatch
import Foundation

// The functions of ends.h. They take and return nothing, so the calling conventions are the same.
@_silgen_name("end_in_read") func endInRead()
@_silgen_name("end_in_condition") func endInCondition()
@_silgen_name("end_in_sleep") func endInSleep()
@_silgen_name("end_spinning") func endSpinning()
@_silgen_name("note_thread") func noteThread()

// MARK: - Generics, closures, witnesses

protocol Step {
    func take(_ depth: Int) -> Int
}

struct Last: Step {
    func take(_ depth: Int) -> Int {
        endInRead()
        return depth
    }
}

struct Then<Next: Step>: Step {
    let next: Next

    @inline(never)
    func take(_ depth: Int) -> Int { next.take(depth + 1) + 1 }
}

@inline(never)
func wrap(_ step: some Step, times: Int) -> Int {
    times == 0 ? step.take(0) + 1 : wrap(Then(next: step), times: times - 1) + 1
}

/// A generic type within a generic type, 15 deep, each with its own witness table.
@_cdecl("stack_swift_generics")
public func swiftGenerics() { print(wrap(Last(), times: 15)) }

@inline(never)
func compose(_ functions: [(Int) -> Int]) -> (Int) -> Int {
    functions.reduce({ $0 }) { outer, inner in { value in outer(inner(value)) + 1 } }
}

/// Closures that capture closures.
@_cdecl("stack_swift_closures")
public func swiftClosures() {
    let functions: [(Int) -> Int] = (0..<20).map { index in
        { value in
            if index == 0 { endSpinning() }
            return value + index
        }
    }
    print(compose(functions.reversed())(1))
}

class Node {
    var description: String { "\(self.next.map { $0.description } ?? Self.bottom())" }
    let next: Node?
    init(_ next: Node?) { self.next = next }
    class func bottom() -> String {
        endInCondition()
        return ""
    }
}

final class Leaf: Node {
    override var description: String { "leaf " + super.description }
}

/// Overridden properties that call their superclass, through optionals and string interpolation.
@_cdecl("stack_swift_classes")
public func swiftClasses() { print((0..<12).reduce(Node(nil)) { node, _ in Leaf(node) }.description) }

/// A comparison that the standard library calls.
@_cdecl("stack_swift_sort")
public func swiftSort() {
    var comparisons = 0
    let sorted = (0..<500).map { ($0 * 7919) % 500 }.lazy.filter { $0 % 2 == 0 }.sorted { left, right in
        comparisons += 1
        if comparisons == 300 { endInSleep() }
        return left < right
    }
    print(sorted.count)
}

struct Key: Hashable, CustomStringConvertible {
    let value: Int
    func hash(into hasher: inout Hasher) {
        hasher.combine(value)
        if value == 7 { endInRead() }
    }
    var description: String { "\(Set([Key(value: 7)]).count)" }
}

/// Through the standard library's printing and hashing.
@_cdecl("stack_swift_description")
public func swiftDescription() {
    var text = ""
    print(["a": [Key(value: 1)]], to: &text)
}

enum Failure: Error { case deep }

@inline(never)
func throwing(_ depth: Int) throws -> Int {
    defer { if depth == 6 { endSpinning() } }
    guard depth > 0 else { throw Failure.deep }
    return try throwing(depth - 1) + 1
}

/// A thrown error, stopped in a `defer`.
@_cdecl("stack_swift_throws")
public func swiftThrows() { print((try? throwing(12)) ?? 0) }

// MARK: - Foundation

struct Document: Codable {
    var parts: [Part] = [Part()]
}

struct Part: Codable {
    init() {}
    init(from decoder: any Decoder) throws { endInRead() }
    func encode(to encoder: any Encoder) throws { endInCondition() }
}

/// Foundation's encoder in the middle of a value.
@_cdecl("stack_foundation_encode")
public func foundationEncode() { print((try? JSONEncoder().encode(["a": Document()])) ?? Data()) }

/// Foundation's decoder in the middle of a value.
@_cdecl("stack_foundation_decode")
public func foundationDecode() {
    print((try? JSONDecoder().decode([String: Document].self, from: Data(#"{"a":{"parts":[{}]}}"#.utf8))) ?? [:])
}

/// A timer of a run loop.
@_cdecl("stack_foundation_timer")
public func foundationTimer() {
    RunLoop.current.add(Timer(timeInterval: 0, repeats: false) { _ in endInSleep() }, forMode: .default)
    RunLoop.current.run(until: .distantFuture)
    endInSleep()
}

/// An observer of a notification.
@_cdecl("stack_foundation_notification")
public func foundationNotification() {
    let name = Notification.Name("StackHost")
    let token = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { _ in endSpinning() }
    NotificationCenter.default.post(name: name, object: nil)
    NotificationCenter.default.removeObserver(token)
}

/// An operation on a worker thread of its queue.
@_cdecl("stack_foundation_operation")
public func foundationOperation() {
    let queue = OperationQueue()
    queue.addOperation { endInRead() }
    queue.waitUntilAllOperationsAreFinished()
}

// MARK: - Dispatch

/// Serial queues within serial queues, all on one thread.
@_cdecl("stack_dispatch_sync")
public func dispatchSync() {
    let queues = (0..<6).map { DispatchQueue(label: "queue \($0)") }
    func nest(_ depth: Int) {
        guard depth < queues.count else { return endInCondition() }
        queues[depth].sync { nest(depth + 1) }
    }
    nest(0)
}

/// A block on a worker thread.
@_cdecl("stack_dispatch_worker")
public func dispatchWorker() {
    DispatchQueue.global().async { DispatchQueue(label: "inner").sync { endInSleep() } }
    DispatchSemaphore(value: 0).wait()
}

/// An iteration of a parallel loop.
@_cdecl("stack_dispatch_apply")
public func dispatchApply() {
    DispatchQueue.concurrentPerform(iterations: 1) { _ in endSpinning() }
}

/// A wait inside Dispatch.
@_cdecl("stack_dispatch_semaphore")
public func dispatchSemaphore() {
    // Dispatch itself waits here, so store the thread before.
    noteThread()
    while DispatchSemaphore(value: 0).wait(timeout: .now() + 3600) == .success {}
}
