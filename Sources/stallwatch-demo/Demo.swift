import ArgumentParser
import Foundation
import StallWatch

@main
struct Demo: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stallwatch-demo",
        abstract: "A small app whose main loop freezes, and what StallWatch reports.",
        discussion: "Exit status: 0 if each freeze gave a report, 1 if not, 64 for a usage error."
    )

    @Flag(help: "Freeze in all ways. Without it: in the first five, which take some 10 seconds.")
    var all = false

    @Flag(help: "List the freezes and exit.")
    var list = false

    @Option(
        name: .customLong("freeze"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp("Make only this freeze. May be given several times.", valueName: "name")
    )
    var names: [String] = []

    @Option(help: ArgumentHelp("The directory for the reports, made if it is missing.", valueName: "dir"))
    var output = "stalls"

    func validate() throws {
        for name in names where !Freeze.all.contains(where: { $0.name == name }) {
            let known = Freeze.all.map(\.name).joined(separator: ", ")
            throw ValidationError("There is no freeze '\(name)': name one of \(known).")
        }
    }

    func run() throws {
        if list {
            for freeze in Freeze.all { print("\(freeze.name): \(freeze.loop) \(freeze.summary)") }
            return
        }
        let chosen =
            names.isEmpty ? Freeze.all.prefix(all ? .max : 5) : Freeze.all.filter { names.contains($0.name) }[...]
        let screen = Screen(directory: output)
        // What an app needs, and what this one adds: a screen, and saturation after one second instead of ten.
        let monitor = try StallMonitor(
            .init(
                threshold: .milliseconds(250), outputs: [.directory(output)],
                detection: .init(saturationThreshold: .seconds(1)), onEvent: screen.show))
        try monitor.watch(.main)
        try monitor.start()
        let times = chosen.count == 1 ? "once" : "\(chosen.count) times"
        let app = names.isEmpty && !all ? "whose main loop freezes five times" : "that freezes \(times)"
        print("stallwatch-demo: a small app \(app). Limit: 250 ms.\n")
        MainActor.assumeIsolated {
            let script = Script(chosen, NotesApp(monitor: monitor), screen)
            _ = Timer.scheduledTimer(withTimeInterval: 0.3, repeats: true) { _ in
                MainActor.assumeIsolated { script.goOn() }
            }
        }
        RunLoop.main.run()
    }
}

/// Makes one freeze after the other, in a timer of the main run loop, where an app does its work, too.
@MainActor
final class Script {
    private var freezes: ArraySlice<Freeze>
    private let app: NotesApp
    private let screen: Screen
    /// The freeze whose report is awaited, with the number of reports about its loop before it.
    private var awaited: (freeze: Freeze, earlier: Int, since: ContinuousClock.Instant)?

    init(_ freezes: ArraySlice<Freeze>, _ app: NotesApp, _ screen: Screen) {
        (self.freezes, self.app, self.screen) = (freezes, app, screen)
    }

    func goOn() {
        if let (freeze, earlier, since) = awaited, screen.reports(about: freeze.loop) == earlier {
            guard ContinuousClock.now - since > .seconds(20) else { return }
            print("\nThere is no report of the freeze '\(freeze.name)'.")
            Demo.exit(withError: ExitCode.failure)
        }
        guard let next = freezes.popFirst() else {
            app.monitor.stop()
            screen.end()
            Demo.exit()
        }
        awaited = (next, screen.reports(about: next.loop), .now)
        next.run(app)
    }
}

struct Freeze: Sendable {
    let name: String
    let summary: String
    var loop = "main"
    /// Called on the main thread: freezes it, or has another loop freeze.
    let run: @MainActor @Sendable (NotesApp) -> Void

    static let all: [Freeze] = [
        Freeze(name: "lock", summary: "waits for a lock while its owner sleeps") { $0.showCount() },
        Freeze(name: "decode", summary: "decodes JSON") { $0.store.load(for: .milliseconds(400)) },
        Freeze(name: "sleep", summary: "sleeps before it tries again") { $0.retryLater() },
        Freeze(name: "child", summary: "waits for a child process") { $0.checkSpelling() },
        Freeze(name: "deadlock", summary: "and a thread want each other's locks") { $0.store.deleteAll() },
        Freeze(name: "semaphore", summary: "waits for what a task will signal") { $0.fetchTitle() },
        Freeze(name: "contention", summary: "computes, as eight threads for each CPU do") { $0.layOutAmongRenderers() },
        Freeze(name: "file", summary: "flushes a file to the disk") { $0.save() },
        Freeze(name: "pipe", summary: "reads a pipe that another thread fills late") { $0.paste() },
        Freeze(name: "saturation", summary: "never waits: it is given short blocks all the time") { $0.animate() },
        Freeze(name: "queue", summary: "has a block that sleeps", loop: "thumbnails") { $0.makeThumbnails() },
        Freeze(name: "pool", summary: "has tasks that block all threads", loop: "tasks") { $0.importFiles() },
        Freeze(name: "spinning", summary: "runs in a mode without sources", loop: "sync") { $0.syncInEmptyMode() },
        Freeze(name: "mode", summary: "tracks the mouse while a timer waits", loop: "canvas") { $0.trackMouse() },
        Freeze(name: "overdue", summary: "gets a late reply", loop: "GET /notes") { $0.request() },
    ]
}
