import StallWatch

/// Keeps what monitors report until somebody asks for it.
actor ReportInbox {
    private var waiting: [StallReport] = []
    private var readers: [Task<Void, Never>] = []

    /// Reads `reports`, too, from now on, to their end.
    func open(_ reports: AsyncStream<StallReport>) {
        readers.append(
            Task {
                for await report in reports { waiting.append(report) }
            }
        )
    }

    /// Waits until `count` reports are there, or `limit` has passed, and then `settling` for any that should not come.
    ///
    /// Returns all that came since the last call.
    func reports(atLeast count: Int, within limit: Duration, settling: Duration) async -> [StallReport] {
        let end = ContinuousClock.now + limit
        while waiting.count < count, ContinuousClock.now < end { await pause(.milliseconds(5)) }
        await pause(settling)
        return takeAll()
    }

    /// What came since the last call, once all monitors have been stopped and have nothing more to say.
    func rest() async -> [StallReport] {
        for reader in readers { await reader.value }
        return takeAll()
    }

    private func takeAll() -> [StallReport] {
        defer { waiting.removeAll() }
        return waiting
    }
}
