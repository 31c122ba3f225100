extension StallReport.OtherThread {
    /// What the thread did, as a phrase that follows its name: `waits in poll`, `is on a CPU or ready to run`.
    package var activity: String {
        if let lock { return lock.waitInWords }
        if let systemCall { return "waits in \(systemCall)" }
        switch threadState {
        case .running?: return "is on a CPU or ready to run"
        case nil: return "was not captured" + (reason.map { ": \($0)" } ?? "")
        default: return "waits"
        }
    }
}

extension StallReport.Lock {
    /// `waits in pthread_mutex_lock for the mutex, which thread 4711 holds`.
    fileprivate var waitInWords: String {
        let place = function.map { " in \($0)" } ?? ""
        let name = kind.named(label)
        guard kind.hasOwner else { return "waits\(place) for \(name), which any thread may end" }
        guard let owner = owners.first?.thread else {
            return "waits\(place) for \(name)" + (reason.map { "; its owner is not known: \($0)" } ?? "")
        }
        let wait =
            switch kind {
            case .threadJoin: "for the end of \(owner.inWords)"
            case .once, .dispatchOnce: "for \(name), which \(owner.inWords) runs"
            default: "for \(name), which \(owner.inWords) holds"
            }
        return (isDeadlock ? "is in a deadlock: waits" : "waits") + "\(place) \(wait)"
    }
}
