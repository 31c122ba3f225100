import LinuxSupport
import StallReports
import Synchronization

/// Names and lines from the images' own files and their debug files.
///
/// It reads an image's files when they are first needed, keeps their contents while a report is made, and frees them
/// afterwards. It keeps the answers, so that the next stall at the same place costs nothing.
final class Symbolicator: Symbolicating {
    /// An answer has the names and paths of the functions inlined at one address, which are usually few.
    static let maximumAnswers = 4096
    static let maximumOpenImages = 64

    /// The most functions on each side that are searched for one of the same module.
    static let maximumSiblings = 8

    private struct Place: Hashable {
        var image: ImageIdentity
        var offset: UInt64
    }

    private struct Export: Hashable {
        var image: ImageIdentity
        var symbol: String
    }

    private let settings: SymbolicationSettings
    private let files: DebugFiles
    private var answers: [Place: ResolvedAddress] = [:]
    /// What the calls before return addresses name, also where they name nothing.
    private var calls: [Place: CalledFunction?] = [:]
    /// The functions that calls reach through the PLT, and where images export them.
    private var imports: [Place: String?] = [:]
    private var exports: [Export: CalledFunction?] = [:]
    private var images: [ImageIdentity: ImageSymbols] = [:]
    /// Kept longer than the images, and than the answers, which may be dropped in the middle of a report.
    private var reasons: [ImageIdentity: String] = [:]
    /// The images of which not all could be read, as without a free descriptor: their answers are for one report only.
    private var unreadImages: Set<ImageIdentity> = []
    private var access: ImageAccess?

    init(_ settings: SymbolicationSettings, debuginfod: DebuginfodClient? = nil) {
        self.settings = settings
        files = DebugFiles(directories: settings.debugDirectories, debuginfod: debuginfod)
    }

    func lookUp(_ offset: UInt64, in image: ImageIdentity, deadline: UInt64) -> ResolvedAddress {
        guard settings.detail != .none else { return ResolvedAddress() }
        let place = Place(image: image, offset: offset)
        if let known = answers[place] { return known }
        guard monotonicNow() < deadline else {
            return ResolvedAddress(reason: DebugInformation.UnavailableReason.outOfTime.reason, isUnfinished: true)
        }
        let answer = lookUpAnew(offset, in: image, deadline: deadline)
        if !answer.isUnfinished {
            if answers.count >= Self.maximumAnswers { answers.removeAll() }
            answers[place] = answer
        }
        return answer
    }

    func symbol(at offset: UInt64, in image: ImageIdentity) -> String? {
        open(image).name(at: offset)
    }

    func calledFunction(before returnAddress: UInt64, in image: ImageIdentity) -> CalledFunction? {
        guard settings.detail != .none else { return nil }
        return remembered(in: \.calls, for: Place(image: image, offset: returnAddress), of: image) {
            open(image).calledFunction(before: returnAddress)
        }
    }

    func function(startingAt address: UInt64, in image: ImageIdentity) -> CalledFunction? {
        open(image).function(startingAt: address)
    }

    func importedSymbol(calledBefore returnAddress: UInt64, in image: ImageIdentity) -> String? {
        guard settings.detail != .none else { return nil }
        return remembered(in: \.imports, for: Place(image: image, offset: returnAddress), of: image) {
            open(image).importedSymbol(calledBefore: returnAddress)
        }
    }

    func exportedFunction(_ symbol: String, of image: ImageIdentity) -> CalledFunction? {
        remembered(in: \.exports, for: Export(image: image, symbol: symbol), of: image) {
            open(image).exportedFunction(symbol)
        }
    }

    func sibling(of function: CalledFunction, in image: ImageIdentity, deadline: UInt64) -> CodeLocation? {
        guard let module = SwiftModule.of(function.symbol) else { return nil }
        for near in open(image).functions(near: function.addresses.lowerBound, count: Self.maximumSiblings)
        where SwiftModule.of(near.name) == module {
            let location = lookUp(near.address, in: image, deadline: deadline).locations.last
            if let location, location.declaration != nil { return location }
        }
        return nil
    }

    private func remembered<Key: Hashable, Answer>(
        in answers: ReferenceWritableKeyPath<Symbolicator, [Key: Answer?]>, for key: Key, of image: ImageIdentity,
        _ find: () -> Answer?
    ) -> Answer? {
        if let known = self[keyPath: answers][key] { return known }
        if self[keyPath: answers].count >= Self.maximumAnswers { self[keyPath: answers].removeAll() }
        let answer = find()
        if images[image]?.mayFindMoreLater == true { unreadImages.insert(image) }
        self[keyPath: answers][key] = .some(answer)
        return answer
    }

    func reason(for image: ImageIdentity) -> String? { reasons[image] }

    func releaseMemory() {
        images.removeAll()
        guard !unreadImages.isEmpty else { return }
        answers = answers.filter { !unreadImages.contains($0.key.image) }
        calls = calls.filter { !unreadImages.contains($0.key.image) }
        imports = imports.filter { !unreadImages.contains($0.key.image) }
        exports = exports.filter { !unreadImages.contains($0.key.image) }
        unreadImages.removeAll()
    }

    func use(_ access: ImageAccess) { self.access = access }

    private func lookUpAnew(_ offset: UInt64, in image: ImageIdentity, deadline: UInt64) -> ResolvedAddress {
        let symbols = open(image)
        func attempt() -> ResolvedAddress {
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
        if reasons.count >= Self.maximumAnswers { reasons.removeAll() }
        reasons[image] = symbols.reason
        if symbols.mayFindMoreLater { unreadImages.insert(image) }
        return answer
    }

    private func open(_ image: ImageIdentity) -> ImageSymbols {
        let mayRead = access?.begin(image) ?? true
        if let known = images[image] { return known }
        if images.count >= Self.maximumOpenImages { images.removeAll() }
        let symbols = ImageSymbols(image, files: mayRead ? files : nil)
        images[image] = symbols
        return symbols
    }
}

/// Finds the names and lines of addresses, on one thread, which is never a monitored one.
package protocol Symbolicating: AnyObject {
    /// Finds the functions at virtual address `offset`; after `deadline` (monotonic ns) only known, marked unfinished.
    func lookUp(_ offset: UInt64, in image: ImageIdentity, deadline: UInt64) -> ResolvedAddress

    /// Returns the mangled name of the function at `offset`, for the monitor's own use; it ignores the settings.
    func symbol(at offset: UInt64, in image: ImageIdentity) -> String?

    /// Returns the function at whose start the direct call before `returnAddress` (virtual) aims; `nil` without one.
    func calledFunction(before returnAddress: UInt64, in image: ImageIdentity) -> CalledFunction?

    /// Returns the function that starts at the virtual address `address` in the file; `nil` if there is none.
    func function(startingAt address: UInt64, in image: ImageIdentity) -> CalledFunction?

    /// Returns the symbol that the direct call before `returnAddress` reaches through the PLT; `nil` for another call.
    func importedSymbol(calledBefore returnAddress: UInt64, in image: ImageIdentity) -> String?

    /// Returns the function that the image exports with that symbol.
    func exportedFunction(_ symbol: String, of image: ImageIdentity) -> CalledFunction?

    /// Returns the place of a function of the same module, for a function that the debug information does not cover.
    func sibling(of function: CalledFunction, in image: ImageIdentity, deadline: UInt64) -> CodeLocation?

    /// Returns the reason why names or lines of the image are missing; `nil` if none are, or none were requested.
    func reason(for image: ImageIdentity) -> String?

    /// Frees everything that can be read again.
    func releaseMemory()

    /// Says in `access` which image is read, and reads none that it avoids; call it before any other function.
    func use(_ access: ImageAccess)
}

extension Symbolicating {
    package func use(_ access: ImageAccess) {}
}

/// What a thread reads, for another one that may have to leave it: a file system may never answer.
package final class ImageAccess: Sendable {
    /// The images whose files are not read.
    package let avoided: Set<ImageIdentity>
    private let current = Mutex<ImageIdentity?>(nil)

    package init(avoiding avoided: Set<ImageIdentity>) { self.avoided = avoided }

    /// The image whose files were needed last; `nil` if none was.
    package var last: ImageIdentity? { current.withLock { $0 } }

    /// Notes that an image's files are needed, and returns whether they may be read.
    package func begin(_ image: ImageIdentity) -> Bool {
        current.withLock { $0 = image }
        return !avoided.contains(image)
    }
}

package struct ResolvedAddress: Sendable, Equatable {
    /// Innermost first, inlined functions before the one that the address is in; never empty.
    var locations = [CodeLocation()]
    /// Why not all is known, in words, where the reason is not the whole image's.
    var reason: String?
    /// Whether the code was compiled elsewhere: the image's debug information does not cover the address, or without that
    /// the symbols around it are a library's.
    var isOutsideDebugInformation = false
    /// Whether it was not done for want of time, so that asking again with more time may tell more.
    var isUnfinished = false
}

/// A function that runs at an address, and the place in its source.
package struct CodeLocation: Sendable, Equatable {
    var symbol: String?
    /// The source file as the compiler recorded it: an absolute path, as a rule.
    var file: String?
    /// From 1; for code that stands for no line, the one before it in the same function.
    var line: Int?
    /// From 1.
    var column: Int?
    /// Where the function is declared; `nil` for one that the compiler made.
    var declaration: Declaration?
    /// The directory that the compiler ran in: with Swift packages, the root package's.
    var directory: String?
    /// Whether the compiler made the function (DW_AT_artificial).
    var isArtificial = false
    var isInlined = false
    /// Whether the image has debug information, and the function has no entry in it.
    var isUnlisted = false

    /// Whether the line is another one than that of the function's declaration, so that it is of its body.
    var hasLineOfItsOwn: Bool {
        guard let line, let declaration else { return false }
        return line != declaration.line || file != declaration.file
    }

    package struct Declaration: Sendable, Equatable {
        var file: String
        var line: Int
    }

    /// Returns the path of a source file that the compiler recorded as `file`, which may be relative to where it ran.
    static func sourcePath(_ file: String, compiledIn directory: String?) -> String {
        guard let directory, directory.hasPrefix("/"), !file.hasPrefix("/"), !file.hasPrefix("<") else { return file }
        return directory + "/" + file
    }
}

/// An ELF file that addresses are looked up in.
package struct ImageIdentity: Sendable, Hashable {
    /// The file's path when it was mapped.
    package var path: String
    /// The build ID in lower-case hexadecimal; `nil` if the file has none.
    package var buildID: String?
    /// What ``StallReport/Image/contentHash`` says.
    package var contentHash: String?
    /// Whether it is the executable of this process, which /proc finds even when its file has been moved or deleted.
    package var isOwnExecutable = false

    package init(path: String, buildID: String?, contentHash: String? = nil, isOwnExecutable: Bool = false) {
        self.path = path
        self.contentHash = contentHash
        self.buildID = buildID
        self.isOwnExecutable = isOwnExecutable
    }
}
