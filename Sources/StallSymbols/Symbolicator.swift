import LinuxSupport
import Glibc

/// Gives addresses their names and lines.
///
/// Used by one thread, never a monitored one.
package protocol Symbolicating: AnyObject {
    /// What runs at the virtual address `offset` of `image`'s file.
    ///
    /// `deadline`: In nanoseconds of CLOCK_MONOTONIC. Past it only what is known already is told, and the answer
    /// says that it is unfinished.
    func lookUp(_ offset: UInt64, in image: ImageIdentity, deadline: UInt64) -> CodeLookup

    /// The mangled name of the function at `offset`, for the monitor's own use: told whatever the settings are.
    func symbol(at offset: UInt64, in image: ImageIdentity) -> String?

    /// Why names or lines of the image are missing; `nil` when none are, or none have been asked for.
    func reason(for image: ImageIdentity) -> String?

    /// Gives back the memory of everything that can be read again.
    func releaseMemory()
}

/// Names and lines from the images' own files and their debug files.
///
/// What an image's files hold is read when it is first needed, kept while a report is made, and given back after it. The
/// answers themselves are kept, so that the next stall at the same place costs nothing.
final class Symbolicator: Symbolicating {
    /// Answers that are kept.
    ///
    /// Each has the names and paths of the functions inlined at one address, which are a few as a rule.
    static let maximumAnswers = 4096
    /// Images whose files may be open at a time.
    static let maximumOpenImages = 64

    private struct Place: Hashable {
        var image: ImageIdentity
        var offset: UInt64
    }

    private let settings: SymbolicationSettings
    private let files: DebugFiles
    private var answers: [Place: CodeLookup] = [:]
    private var images: [ImageIdentity: ImageSymbols] = [:]
    /// Kept with the answers, and longer than the images.
    private var reasons: [ImageIdentity: String] = [:]

    init(_ settings: SymbolicationSettings, debuginfod: DebuginfodClient? = nil) {
        self.settings = settings
        files = DebugFiles(directories: settings.debugDirectories, debuginfod: debuginfod)
    }

    func lookUp(_ offset: UInt64, in image: ImageIdentity, deadline: UInt64) -> CodeLookup {
        guard settings.detail != .none else { return .nothing }
        let place = Place(image: image, offset: offset)
        if let known = answers[place] { return known }
        guard monotonicNow() < deadline else {
            return CodeLookup(
                locations: [CodeLocation()], reason: DebugInformation.UnavailableReason.outOfTime.reason,
                isUnfinished: true
            )
        }
        let answer = lookUpAnew(offset, in: image, deadline: deadline)
        if !answer.isUnfinished {
            if answers.count >= Self.maximumAnswers {
                answers.removeAll()
                reasons.removeAll()
            }
            answers[place] = answer
        }
        return answer
    }

    func symbol(at offset: UInt64, in image: ImageIdentity) -> String? {
        open(image).name(at: offset)
    }

    func reason(for image: ImageIdentity) -> String? { reasons[image] }

    func releaseMemory() { images.removeAll() }

    private func lookUpAnew(_ offset: UInt64, in image: ImageIdentity, deadline: UInt64) -> CodeLookup {
        let symbols = open(image)
        func attempt() -> CodeLookup {
            let others = images.values.reduce(0) { $0 + ($1 === symbols ? 0 : $1.memoryBytes) }
            return symbols.lookUp(
                offset, lines: settings.detail == .lines, deadline: deadline,
                maximumBytes: settings.maximumMemoryBytes - others
            )
        }
        var answer = attempt()
        if symbols.isTooLarge, images.count > 1 {
            images = [image: symbols]
            symbols.retryDebugInformation()
            answer = attempt()
        }
        reasons[image] = symbols.reason
        return answer
    }

    private func open(_ image: ImageIdentity) -> ImageSymbols {
        if let known = images[image] { return known }
        if images.count >= Self.maximumOpenImages { images.removeAll() }
        let symbols = ImageSymbols(image, files: files)
        images[image] = symbols
        return symbols
    }
}
