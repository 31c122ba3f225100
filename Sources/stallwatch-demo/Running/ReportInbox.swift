import StallWatch

/// Keeps what monitors report until somebody asks for it.
actor ReportInbox {
    private var waiting: [StallReport] = []
    private var readers: [Int: Task<Void, Never>] = [:]
    private var opened = 0

    /// Reads `reports`, too, from now on, to their end.
    func open(_ reports: AsyncStream<StallReport>) {
        let number = opened
        opened += 1
        // Once it has ended there is nothing to wait for, and a soak opens thousands.
        readers[number] = Task {
            for await report in reports { waiting.append(report) }
            readers[number] = nil
        }
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
        for reader in readers.values { await reader.value }
        return takeAll()
    }

    private func takeAll() -> [StallReport] {
        defer { waiting.removeAll() }
        return waiting
    }
}
