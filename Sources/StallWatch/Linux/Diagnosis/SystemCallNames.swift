struct SystemCallNames: Sendable {
    /// A run of calls with consecutive numbers.
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

    /// Returns the name of a call; `nil` if the headers behind the table do not define it.
    func name(_ number: Int) -> String? {
        for run in runs where run.first <= number && number - run.first < run.names.count {
            return String(run.names[number - run.first])
        }
        return nil
    }

    /// Returns the number of a call; `nil` if this architecture does not have it.
    func number(of name: String) -> Int? {
        for run in runs {
            if let index = run.names.firstIndex(of: Substring(name)) { return run.first + index }
        }
        return nil
    }

    /// The names for the architecture of this build.
    static var current: SystemCallNames {
        #if arch(x86_64)
            x86_64
        #else
            aarch64
        #endif
    }
}
