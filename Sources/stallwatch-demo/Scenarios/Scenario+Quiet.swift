import StallWatch

extension Scenario {
    /// The scenarios of which nothing must be reported.
    ///
    /// To add one, add a declaration here.
    static let quietScenarios: [Scenario] = [
        .quiet("idle", "the loop waits for 3 s") { _ in
            await pause(.seconds(3))
            return nil
        },
        .quiet("healthy-storm", "200,000 source0 turns back to back") { _ in
            await MainLoop.source0Turns(200_000)
            return nil
        },
        .quiet("short", "40 stalls of 60 % of the threshold, one a turn", times: 0.6) { context in
            var longest = Duration.zero
            for index in 0..<40 {
                let callout = MainLoop.callouts[index % MainLoop.callouts.count]
                longest = max(longest, await callout { sleepTooLong(for: context.stall) })
                // The loop has to wait in between: two of these in one turn would be a stall in truth.
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

/// Lets time pass without touching any loop.
func pause(_ duration: Duration) async {
    // Throws only when the task is cancelled, and nothing here cancels one.
    try? await Task.sleep(for: duration)
}
