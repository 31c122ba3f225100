extension HealthRecord {
    /// The state of the process in one sentence.
    public var summary: String {
        switch state {
        case .ok:
            let count = loops.count + omittedLoops
            return (count == 1 ? "1 loop makes progress" : "\(count) loops make progress")
                + (isPaused ? ", while the program has paused the monitor" : "")
        case .stalled: return stall?.sentence ?? "a loop has stalled"
        case .starting:
            return loops.isEmpty ? "no loop is watched" : "\(labels(.starting)) not begun the first turn"
        case .held: return "a debugger holds a thread: \(labels(.held)) not finished a turn in time"
        case .stopped: return "no monitor runs: the program has stopped it, or has not started it"
        default: return "the state is \"\(state.rawValue)\", which this version does not know"
        }
    }

    /// The loops in that state, with the verb: "main has", "main and 2 other loops have".
    private func labels(_ state: LoopState) -> String {
        let labels = loops.filter { $0.state == state }.map(\.label)
        guard let first = labels.first else { return "a loop has" }
        switch labels.count {
        case 1: return "\(first) has"
        case 2: return "\(first) and 1 other loop have"
        default: return "\(first) and \(labels.count - 1) other loops have"
        }
    }
}
