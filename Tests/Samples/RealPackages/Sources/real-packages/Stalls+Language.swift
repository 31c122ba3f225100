import Dispatch
import Glibc
import StallWatch

// Lazy globals.

private enum Settings {
    /// Its initializer takes as long as a stall.
    static let slow: [Int] = loadSettings()
    /// The same, for another thread to run it.
    static let shared: [Int] = {
        DispatchQueue.main.async { useSharedCatalog() }
        catalogIsAwaited.wait()
        usleep(stallMicroseconds)
        finish()
        return [2]
    }()
}
private let catalogIsAwaited = DispatchSemaphore(value: 0)

@inline(never)
private func loadSettings() -> [Int] {
    usleep(stallMicroseconds)
    finish()
    return [1]
}

@inline(never)
private func useSlowSettings() {
    use(Settings.slow)
    finish()
}

@inline(never)
private func useSharedCatalog() {
    catalogIsAwaited.signal()
    use(Settings.shared)
    finish()
}

// Two functions that a release build merges, and their callers.

@inline(never)
private func readConfiguration(_ path: String) -> Int {
    usleep(stallMicroseconds)
    finish()
    return path.utf8.count + 41
}

@inline(never)
private func readPreferences(_ path: String) -> Int {
    usleep(stallMicroseconds)
    finish()
    return path.utf8.count + 97
}

@inline(never)
private func openConfiguration() {
    use(readConfiguration("configuration"))
    finish()
}

@inline(never)
private func openPreferences() {
    use(readPreferences("preferences"))
    finish()
}

// Generic functions, witnesses, closures, key paths, existentials.

@inline(never)
@_semantics("optimize.sil.specialize.generic.never")
private func searchGenerically<Element: Comparable>(_ elements: [Element], for wanted: Element) -> Int {
    let end = DispatchTime.now() + stallLength
    var found = 0
    while DispatchTime.now() < end {
        for element in elements where element == wanted { found &+= 1 }
    }
    finish()
    return found
}

private protocol Worker {
    func crunch() -> Int
}

private struct Miner: Worker {
    @inline(never)
    func crunch() -> Int {
        let end = DispatchTime.now() + stallLength
        var value: UInt64 = 1
        while DispatchTime.now() < end {
            for _ in 0..<1_000 { value = value &* 6_364_136_223_846_793_005 &+ 1 }
        }
        finish()
        return Int(truncatingIfNeeded: value)
    }
}

private struct Idler: Worker {
    func crunch() -> Int { 0 }
}

@inline(never)
private func makeWorker(_ number: Int) -> any Worker { number == 0 ? Idler() : Miner() }

private struct Invoice {
    var amount: Int
    /// Its key path goes through functions that the compiler makes.
    var slowTotal: Int {
        usleep(60_000)
        finish()
        return amount * 2
    }
}

@inline(never)
private func sumByKeyPath() {
    let path: [KeyPath<Invoice, Int>] = [\.slowTotal, \.amount]
    use((0..<6).map { Invoice(amount: $0)[keyPath: path[0]] })
    finish()
}

@inline(never)
private func runClosure() {
    let closures: [() -> Void] = [
        {
            usleep(stallMicroseconds)
            finish()
        }
    ]
    for closure in closures { closure() }
    finish()
}

@MainActor
@inline(never)
private func recompute() async {
    let end = DispatchTime.now() + stallLength
    var text = ""
    while DispatchTime.now() < end { text = String(describing: [1: "one", 2: "two"]) }
    use(text)
    finish()
    await Task.yield()
}

let languageStalls = [
    LabeledStall("slow initializer of a lazy global", culprit: "loadSettings", .sleeping) { useSlowSettings() },
    LabeledStall(
        "another thread initializes a lazy global", culprit: "useSharedCatalog", .waitingForLock, lock: "once"
    ) { Thread.detach { use(Settings.shared) } },
    LabeledStall(
        "first of two merged functions", culprit: "readConfiguration", orCaller: "openConfiguration", .sleeping
    ) { openConfiguration() },
    LabeledStall(
        "second of two merged functions", culprit: "readPreferences", orCaller: "openPreferences", .sleeping
    ) { openPreferences() },
    LabeledStall("generic function", culprit: "searchGenerically", .computing) {
        use(searchGenerically((0..<1_000).map { "\($0)" }, for: "x"))
    },
    LabeledStall("protocol witness", culprit: "crunch", .computing) { use(makeWorker(1).crunch()) },
    LabeledStall("key path", culprit: "slowTotal", .sleeping) { sumByKeyPath() },
    LabeledStall("closure", culprit: "runClosure", .sleeping) { runClosure() },
    LabeledStall("async function on the main actor", culprit: "recompute", .computing) {
        Task { @MainActor in await recompute() }
    },
]
