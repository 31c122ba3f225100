import Glibc
import LinuxSupport
import StallReports

/// Names and lines from the images' own files and their debug files.
///
/// It reads an image's files when they are first needed, keeps their contents while a report is made, and frees them
/// afterwards. It keeps the answers, so that the next stall at the same place costs nothing.
final class Symbolicator: Symbolicating {
    /// The largest number of answers to keep.
    ///
    /// An answer has the names and paths of the functions inlined at one address, which are usually few.
    static let maximumAnswers = 4096
    /// The largest number of images with open files.
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
