import StallWatch

extension Scenario {
    /// Stalls while the app has paused the monitor.
    static let pausedScenarios: [Scenario] = [
        .quiet("paused", "a timer sleeps while the monitor is paused", suppressed: .paused) { context in
            let monitor = context.monitor
            _ = await MainLoop.timer { monitor.paused { sleepTooLong(for: context.threshold * 2) } }
            return nil
        },
        .quiet("ignore-scope", "a source0 sleeps in an ignored scope", suppressed: .paused) { context in
            let monitor = context.monitor
            _ = await MainLoop.source0 {
                let scope = monitor.ignoreScope()
                sleepTooLong(for: context.threshold * 2)
                scope.end()
            }
            return nil
        },
        .stalling(
            "stall-after-pause", "a timer sleeps in a pause and then goes on sleeping", times: 2,
            .main(.timer, in: "sleepTooLong(for:)")
        ) { context in
            let monitor = context.monitor
            let injected = DurationBox()
            _ = await MainLoop.timer {
                monitor.paused { sleepTooLong(for: context.threshold * 1.5) }
                injected.measure { sleepTooLong(for: context.stall) }
            }
            return injected.value
        },
    ]
}
