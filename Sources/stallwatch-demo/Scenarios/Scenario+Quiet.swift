import StallWatch

extension Scenario {
    /// Scenarios that must give no report.
    static let quietScenarios: [Scenario] = [
        .quiet("idle", "the loop waits for 3 s") { _ in
            await pause(.seconds(3))
            return nil
        },
        .quiet("healthy-storm", "200,000 source0 turns back to back") { _ in
            await MainLoop.source0Turns(200_000)
            return nil
        },
        .quiet("short", "40 sleeps of 60 % of the threshold, one per turn", times: 0.6) { context in
            var longest = Duration.zero
            for index in 0..<40 {
                let callout = MainLoop.callouts[index % MainLoop.callouts.count]
                longest = max(longest, await callout { sleepTooLong(for: context.stall) })
                // The loop has to wait in between: two of these in one turn would be a stall.
                await pause(.milliseconds(10))
            }
            return longest
        },
        .quiet("busy-timers", "a timer fires 1,000 times a second for 3 s") { _ in
            await MainLoop.repeatingTimer(every: .milliseconds(1), for: .seconds(3))
            return nil
        },
    ]
}

/// Waits without using any loop.
func pause(_ duration: Duration) async {
    // Throws only if the task is cancelled, and nothing here cancels one.
    try? await Task.sleep(for: duration)
}
