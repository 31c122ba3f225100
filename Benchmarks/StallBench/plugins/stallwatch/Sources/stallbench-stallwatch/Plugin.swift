import StallWatch

/// Set once, before the first turn, on the loop's thread, and never changed.
nonisolated(unsafe) private var monitor: StallMonitor?
nonisolated(unsafe) private var probe: LoopProbe?

/// Watches the loop of the driver.
///
/// The driver calls it once, before the first turn.
///
/// - Parameters:
///   - milliseconds: The threshold.
///   - output: The directory for reports.
@_cdecl("plugin_start")
public func startPlugin(_ milliseconds: UInt32, _ output: UnsafePointer<CChar>) {
    do {
        let loop = LoopProbe(label: "loop")
        let started = try StallMonitor(
            .init(threshold: .milliseconds(Int64(milliseconds)), outputs: [.directory(String(cString: output))]))
        try started.watch(.probe(loop))
        try started.start()
        (monitor, probe) = (started, loop)
    } catch {
        print("stallbench: StallWatch could not start: \(error)")
    }
}

/// Begins a turn of the loop.
@_cdecl("plugin_begin_turn")
public func beginPluginTurn() { probe?.beginTurn() }

/// Ends the turn.
@_cdecl("plugin_end_turn")
public func endPluginTurn() { probe?.endTurn() }

/// Completes the reports before the driver ends.
@_cdecl("plugin_stop")
public func stopPlugin() { monitor?.stop() }
