// Watching each kind of loop. The blocks here are in the article "Watching every kind of loop".

import Dispatch
import Foundation
import StallWatch

let monitor = try StallMonitor(.init(threshold: .milliseconds(250), reports: .directory("stalls")))

func watchWhateverServesTheMainQueue() throws {
    try monitor.watch(.main)
}

func watchRunLoops(worker: RunLoop, tracking: RunLoop.Mode) throws {
    try monitor.watch(.mainRunLoop)
    try monitor.watch(.runLoop(worker, label: "worker", threshold: .seconds(2)))
    try monitor.watch(.runLoop(.current, label: "canvas", modes: [.common, tracking], watchGaps: true))
}

func watchQueues(storage: DispatchQueue) throws {
    try monitor.watch(.queue(storage, label: "storage", threshold: .milliseconds(100)))
    try monitor.watch(.globalQueue(.userInitiated, label: "user initiated"))
    try monitor.watch(.cooperativePool())
}

func watchExecutors(renderer: any SerialExecutor) throws {
    try monitor.watch(.executor(renderer, label: "renderer"))
}

func runAGame(waitForFrame: () -> Bool, draw: () -> Void) throws {
    let probe = LoopProbe(label: "frames")
    try monitor.watch(.probe(probe, threshold: .milliseconds(50)))
    while waitForFrame() {
        probe.beginTurn()
        draw()
        probe.endTurn()
    }
}

func watchWithAThresholdThatFits(search: DispatchQueue) throws {
    try monitor.watch(.queue(search, label: "search", threshold: .seconds(1)))
}

func changeWhileItRuns() throws {
    try monitor.setThreshold(.milliseconds(500), of: "storage")
    monitor.unwatch("canvas")
}

func importWithoutBeingWatched(_ importDocuments: () -> Void) {
    monitor.paused { importDocuments() }
}

struct Feed {}

func loadFeed() async throws -> Feed { Feed() }

func feed(_ monitor: StallMonitor) async throws -> Feed {
    try await monitor.operation("GET /feed", over: .seconds(5)) {
        try await loadFeed()
    }
}
