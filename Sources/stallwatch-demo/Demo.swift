import ArgumentParser
import Foundation
import StallWatch
import TextOutput

@main
struct Demo: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stallwatch-demo",
        abstract: "A small app whose main loop freezes, and what StallWatch reports.",
        discussion: "Exit status: 0 if each freeze gave a report, 1 if not, 64 for a usage error."
    )

    @Flag(help: "Freeze in all ways. Without it: in the first five, which take some 10 seconds.")
    var all = false

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
        let chosen =
            names.isEmpty ? Freeze.all.prefix(all ? .max : 5) : Freeze.all.filter { names.contains($0.name) }[...]
        let screen = Screen(directory: output, width: Terminal.standardOutput.width)
        // What an app needs, and what this one adds: a screen, and saturation after one second instead of ten.
        let monitor = try StallMonitor(
            .init(
                threshold: .milliseconds(250), outputs: [.directory(output)],
                detection: .init(saturationThreshold: .seconds(1)), onEvent: screen.show))
        try monitor.watch(.main)
        try monitor.start()
        let app = names.isEmpty && !all ? "whose main loop freezes five times" : "whose loops freeze"
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
    var loop = "main"
    /// Called on the main thread: freezes it, or has another loop freeze.
    let run: @MainActor @Sendable (NotesApp) -> Void

    static let all: [Freeze] = [
        Freeze(name: "lock") { $0.showCount() },
        Freeze(name: "decode") { $0.store.load(for: .milliseconds(400)) },
        Freeze(name: "sleep") { $0.retryLater() },
        Freeze(name: "child") { $0.checkSpelling() },
        Freeze(name: "deadlock") { $0.store.deleteAll() },
        Freeze(name: "semaphore") { $0.fetchTitle() },
        Freeze(name: "contention") { $0.layOutAmongRenderers() },
        Freeze(name: "file") { $0.save() },
        Freeze(name: "pipe") { $0.paste() },
        Freeze(name: "saturation") { $0.animate() },
        Freeze(name: "queue", loop: "thumbnails") { $0.makeThumbnails() },
        Freeze(name: "pool", loop: "tasks") { $0.importFiles() },
        Freeze(name: "spinning", loop: "sync") { $0.syncInEmptyMode() },
        Freeze(name: "mode", loop: "canvas") { $0.trackMouse() },
        Freeze(name: "overdue", loop: "GET /notes") { $0.request() },
    ]
}
