import DequeModule
import Dispatch
import Foundation
import NIOCore
import OrderedCollections

// Closures of the app that a package or a library runs: the closure stalls, so its function is the one to blame.

@inline(never)
private func filterDeque() {
    var deque = Deque(0..<16)
    deque.removeAll { number in
        usleep(stallMicroseconds / 16)
        finish()
        return number % 3 == 0
    }
    use(deque.count)
    finish()
}

@inline(never)
private func mergeCatalogs() {
    var catalog: OrderedDictionary<Int, Int> = [1: 1, 2: 2, 3: 3, 4: 4]
    let other = catalog
    catalog.merge(other) { old, new in
        usleep(stallMicroseconds / 4)
        finish()
        return old &+ new
    }
    use(catalog.count)
    finish()
}

@inline(never)
private func syncWithSlowClosure() {
    let queue = DispatchQueue(label: "idle")
    let count = queue.sync {
        usleep(stallMicroseconds)
        finish()
        return 1
    }
    use(count)
    finish()
}

@inline(never)
private func postNotification() {
    let name = Notification.Name("slow")
    let token = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { _ in
        usleep(stallMicroseconds)
        finish()
    }
    NotificationCenter.default.post(name: name, object: nil)
    NotificationCenter.default.removeObserver(token)
    finish()
}

@inline(never)
private func enumerateText() {
    let text = "one\ntwo\nthree\nfour"
    text.enumerateSubstrings(in: text.startIndex..., options: .byLines) { line, _, _, _ in
        usleep(stallMicroseconds / 4)
        use(line)
        finish()
    }
    finish()
}

@inline(never)
private func groupNumbers() {
    let groups = Dictionary(grouping: 0..<16) { number in
        usleep(stallMicroseconds / 16)
        finish()
        return number % 3
    }
    use(groups)
    finish()
}

@inline(never)
private func sortByKeyPath() {
    struct Player {
        var score: Int
        var name: String
    }
    let players = (0..<2_000).map { Player(score: ($0 &* 7_919) % 2_003, name: "player \($0)") }
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end { use(players.sorted(using: KeyPathComparator(\Player.score)).count) }
    finish()
}

@inline(never)
private func failFuture() {
    let promise = eventLoop.makePromise(of: Int.self)
    promise.futureResult.whenFailure { error in
        usleep(stallMicroseconds)
        use(error)
        finish()
    }
    promise.fail(ChannelError.eof)
    finish()
}

let closureStalls = [
    LabeledStall("Deque.removeAll(where:)", culprit: "filterDeque", .sleeping) { filterDeque() },
    LabeledStall("OrderedDictionary.merge", culprit: "mergeCatalogs", .sleeping) { mergeCatalogs() },
    LabeledStall("closure of DispatchQueue.sync", culprit: "syncWithSlowClosure", .sleeping) { syncWithSlowClosure() },
    LabeledStall("closure of a notification", culprit: "postNotification", .sleeping) { postNotification() },
    LabeledStall("closure of enumerateSubstrings", culprit: "enumerateText", .sleeping) { enumerateText() },
    LabeledStall("closure of Dictionary(grouping:)", culprit: "groupNumbers", .sleeping) { groupNumbers() },
    LabeledStall("sort by a key path", culprit: "sortByKeyPath", .computing) { sortByKeyPath() },
    LabeledStall("NIO: closure of a failed future", culprit: "failFuture", .sleeping, on: .nio) { failFuture() },
]
