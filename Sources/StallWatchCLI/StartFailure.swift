import ArgumentParser

/// A program that cannot be started.
struct StartFailure: Error, Equatable {
    /// The exit status of shells for a program that is there and cannot be executed.
    static let notExecutable: Int32 = 126
    /// The exit status of shells for a program that is not there.
    static let notFound: Int32 = 127

    var sentence: String
    /// ``notExecutable`` or ``notFound``.
    var status: Int32

    /// Prints the sentence and returns the error that ends the tool with the status.
    var exit: ExitCode {
        StandardError.write("Error: \(sentence)\n")
        return ExitCode(status)
    }
}
