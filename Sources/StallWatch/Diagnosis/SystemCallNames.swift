/// The names of one architecture's system calls.
struct SystemCallNames: Sendable {
    /// Calls whose numbers follow each other.
    struct Run: Sendable {
        var first: Int
        var names: [Substring]

        init(_ first: Int, _ names: String) {
            self.first = first
            self.names = names.split(separator: " ")
        }
    }
    private let runs: [Run]

    init(_ runs: [Run]) {
        self.runs = runs
    }

    /// The name of call `number`, or `nil` if these headers do not know it.
    func name(_ number: Int) -> String? {
        for run in runs where run.first <= number && number - run.first < run.names.count {
            return String(run.names[number - run.first])
        }
        return nil
    }

    /// The number of the call of that name, or `nil` if this architecture has none.
    func number(of name: String) -> Int? {
        for run in runs {
            if let index = run.names.firstIndex(of: Substring(name)) { return run.first + index }
        }
        return nil
    }

    /// The names for the architecture that this is compiled for.
    static var current: SystemCallNames {
        #if arch(x86_64)
            x86_64
        #else
            aarch64
        #endif
    }
}
