import ArgumentParser

/// The loops of a program that `stallwatch run` watches.
enum LoopChoice: String, CaseIterable, ExpressibleByArgument {
    case auto
    case runLoop = "run-loop"
    case mainQueue = "main-queue"
    case glib

    /// Reads a name.
    init(parsing text: String) throws {
        guard let choice = LoopChoice(rawValue: text) else {
            throw ValidationError("'\(text)' is no loop: give auto, run-loop, main-queue or glib.")
        }
        self = choice
    }

    /// The sum of the values of `enum cpreload_loop` (CPreload.h).
    var bits: Int32 {
        switch self {
        case .auto: 7
        case .runLoop: 1
        case .mainQueue: 2
        case .glib: 4
        }
    }
}
