import StallWatch

/// Keeps the reports of several monitors until a caller takes them.
actor ReportInbox {
    private var waiting: [StallReport] = []
    private var readers: [Int: Task<Void, Never>] = [:]
    private var opened = 0

    /// Starts to read `reports`, up to the end of the stream.
    func open(_ reports: AsyncStream<StallReport>) {
        let number = opened
        opened += 1
        // A finished reader is removed, because a soak opens thousands.
        readers[number] = Task {
            for await report in reports { waiting.append(report) }
            readers[number] = nil
        }
    }

    /// Waits for `count` reports, for `limit` at most, and then `settling` longer for unexpected ones.
    ///
    /// - Returns: All reports since the last call.
    func reports(atLeast count: Int, within limit: Duration, settling: Duration) async -> [StallReport] {
        let end = ContinuousClock.now + limit
        while waiting.count < count, ContinuousClock.now < end { await pause(.milliseconds(5)) }
        await pause(settling)
        return takeAll()
    }

    /// Waits for the end of all streams, which comes after their monitors have stopped.
    ///
    /// - Returns: All reports since the last call.
    func rest() async -> [StallReport] {
        for reader in readers.values { await reader.value }
        return takeAll()
    }

    private func takeAll() -> [StallReport] {
        defer { waiting.removeAll() }
        return waiting
    }
}
