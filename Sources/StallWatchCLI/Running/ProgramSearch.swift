import Glibc
import LinuxSupport

/// The search for a program, as execvp(3) and shells do it.
struct ProgramSearch {
    /// The directories of PATH.
    let directories: [String]

    /// - Parameter path: The value of PATH; `nil` if it is not set.
    init(path: String?) {
        // An empty entry is the current directory (environ(7)).
        directories = (path ?? "/bin:/usr/bin").split(separator: ":", omittingEmptySubsequences: false)
            .map { $0.isEmpty ? "." : String($0) }
    }

    /// Returns the path of a program.
    ///
    /// - Parameter name: The program: with a slash it is a path, else a name in PATH.
    /// - Returns: The path, for execve(2).
    /// - Throws: ``StartFailure`` if there is no such program, or if it cannot be executed.
    func path(of name: String) throws(StartFailure) -> String {
        guard !name.contains("/") else {
            try check(name)
            return name
        }
        var failure: StartFailure?
        for directory in directories {
            do throws(StartFailure) {
                try check("\(directory)/\(name)")
                return "\(directory)/\(name)"
            } catch {
                if error.status == StartFailure.notExecutable { failure = failure ?? error }
            }
        }
        throw failure
            ?? StartFailure(
                sentence: "\(name) is not found in PATH: give the program's path, such as ./\(name)",
                status: StartFailure.notFound)
    }

    private func check(_ path: String) throws(StartFailure) {
        guard let status = FileStatus(path: path) else {
            let error = errno
            let isMissing = error == ENOENT || error == ENOTDIR
            throw StartFailure(
                sentence: "\(path) cannot be started: \(String(cString: strerror(error)))",
                status: isMissing ? StartFailure.notFound : StartFailure.notExecutable)
        }
        guard status.isRegular else {
            let kind = status.isDirectory ? "a directory" : "not a regular file"
            throw StartFailure(
                sentence: "\(path) is \(kind): name a program", status: StartFailure.notExecutable)
        }
        guard access(path, X_OK) == 0 else {
            throw StartFailure(
                sentence: "\(path) is not executable: make it so with chmod +x, or name the program that reads it",
                status: StartFailure.notExecutable)
        }
    }
}
