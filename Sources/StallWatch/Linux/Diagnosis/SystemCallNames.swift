/// The names of system calls, in runs of consecutive numbers, by the number of the first.
struct SystemCallNames: Sendable {
    private let runs: [Int: [Substring]]

    init(_ runs: [Int: String]) {
        self.runs = runs.mapValues { $0.split(whereSeparator: \.isWhitespace) }
    }

    /// Returns the name of a call; `nil` if the headers behind the table do not define it.
    func name(_ number: Int) -> String? {
        for (first, names) in runs where number >= first && number - first < names.count {
            return String(names[number - first])
        }
        return nil
    }

    /// Returns the number of a call; `nil` if this architecture does not have it.
    func number(of name: String) -> Int? {
        for (first, names) in runs {
            if let index = names.firstIndex(of: Substring(name)) { return first + index }
        }
        return nil
    }

    static var current: SystemCallNames {
        #if arch(x86_64)
            x86_64
        #else
            aarch64
        #endif
    }
}
