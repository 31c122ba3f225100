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

    /// Returns the number of the call that glibc's function of a name makes; `nil` if it is not known.
    func number(ofFunction name: String) -> Int? { number(of: Self.calls[name] ?? name) }

    /// The calls of functions that have another name (glibc's sysdeps/unix/sysv/linux).
    private static let calls = [
        "pread": "pread64", "pwrite": "pwrite64", "open": "openat", "open64": "openat", "openat64": "openat",
        "send": "sendto", "recv": "recvfrom", "waitpid": "wait4", "select": "pselect6", "preadv64": "preadv",
        "pwritev64": "pwritev",
    ]

    static var current: SystemCallNames {
        #if arch(x86_64)
            x86_64
        #else
            aarch64
        #endif
    }
}
