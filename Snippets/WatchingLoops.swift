// Watching each kind of loop. The blocks here are in the article "Watching every kind of loop".

import Dispatch
import Foundation
import StallWatch

let monitor = try StallMonitor(.init(threshold: .milliseconds(250), outputs: [.directory("stalls")]))

func watchWhateverServesTheMainQueue() throws {
    try monitor.watch(.main)
}

func watchRunLoops(worker: RunLoop, tracking: RunLoop.Mode) throws {
    try monitor.watch(.runLoop(worker, label: "worker"), threshold: .seconds(2))
    try monitor.watch(.runLoop(.current, label: "canvas", modes: [.common, tracking], watchGaps: true))
}

func watchQueues(storage: DispatchQueue) throws {
    try monitor.watch(.queue(storage, label: "storage"), threshold: .milliseconds(100))
    try monitor.watch(.globalQueue(.userInitiated, label: "user initiated"))
    try monitor.watch(.cooperativePool())
}

func watchExecutors(renderer: any SerialExecutor) throws {
    try monitor.watch(.executor(renderer, label: "renderer"))
}

func runAGame(waitForFrame: () -> Bool, draw: () -> Void) throws {
    let probe = LoopProbe(label: "frames")
    try monitor.watch(.probe(probe), threshold: .milliseconds(50))
    while waitForFrame() {
        probe.beginTurn()
        draw()
        probe.endTurn()
    }
}

func watchWithAThresholdThatFits(search: DispatchQueue) throws {
    try monitor.watch(.queue(search, label: "search"), threshold: .seconds(1))
}

func changeWhileItRuns(queue: DispatchQueue) throws {
    let storage = try monitor.watch(.queue(queue, label: "storage"), threshold: .milliseconds(100))
    try storage.setThreshold(.milliseconds(500))
    print(storage.statistics.stalls)
    storage.stop()
}

func importWithoutBeingWatched(_ importDocuments: () -> Void) {
    monitor.withMonitoringPaused { importDocuments() }
}

struct Feed {}

func loadFeed() async throws -> Feed { Feed() }

func feed(_ monitor: StallMonitor) async throws -> Feed {
    try await monitor.withLimit(.seconds(5), "GET /feed") {
        try await loadFeed()
    }
}
