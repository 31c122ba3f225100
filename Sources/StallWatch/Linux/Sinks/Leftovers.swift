import LinuxSupport

extension FixedDirectory {
    /// The most names in a directory among which leftovers are looked for: one for temporary files may have very many.
    static let maximumSearched = 4_096

    /// Removes what processes that are gone have left beside these files of ``AtomicFile``; reads the directory once.
    ///
    /// What processes on other hosts and in other PID namespaces have left stays for a day. `now` is in nanoseconds
    /// since 1970.
    func removeLeftovers(of files: [String], now: UInt64 = wallClockNow()) {
        let own = ProcessIdentity.writer
        for name in names(in: self, atMost: Self.maximumSearched) {
            guard let writer = files.lazy.compactMap({ AtomicFile.writer(of: name, beside: $0) }).first,
                let status = FileStatus(path: name, in: self), status.isRegular
            else { continue }
            // Not the time of its contents, which for a health file is that of the last progress.
            let silence = now - min(UInt64(max(status.touchedAt, 0)), now)
            let isGone = MonitorLock.isGone(
                writer, seenFrom: own, isAlive: writer.isAlive, lock: .unknown, silence: silence)
            // One that cannot be removed is tried again at the next start.
            if isGone { try? AtomicFile.remove(name, in: self) }
        }
    }
}
