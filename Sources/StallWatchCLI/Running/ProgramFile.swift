import Glibc
import LinuxSupport
import StallReports
import StallSymbols

/// An executable file, with what decides whether the preloaded library works in it.
enum ProgramFile: Equatable {
    /// An ELF executable.
    case program(ELFFile.Program)
    /// A script, with the words of its first line.
    case script([String])

    /// The longest first line of a script, in bytes (BINPRM_BUF_SIZE).
    static let longestLine = 256

    /// Reads a file.
    ///
    /// - Parameter path: The file, which is executable.
    /// - Throws: ``StartFailure`` if it is neither of them, cannot be read, or is built for another kind of machine.
    init(path: String) throws(StartFailure) {
        let start: [UInt8]
        let file: ELFFile
        do throws(StallWatchError) {
            file = try ELFFile(path: path)
            let count = min(try file.size(), UInt64(Self.longestLine))
            start = try file.bytes(at: 0, count: count, atMost: Self.longestLine)
        } catch {
            throw Self.unchecked(path, error)
        }
        if let words = Self.words(ofFirstLine: start) {
            guard !words.isEmpty else {
                throw Self.failure(path, "names no program in its first line: write one after #!")
            }
            self = .script(words)
            return
        }
        guard start.count > 5, start.starts(with: [0x7f, 0x45, 0x4c, 0x46]) else {
            throw Self.failure(
                path, "is neither an ELF file nor a script that begins with #!: name the program that reads it")
        }
        guard start[4] == UInt8(ELFCLASS64), start[5] == UInt8(ELFDATA2LSB) else {
            throw Self.failure(path, "is built for another architecture, so the monitor cannot be loaded into it")
        }
        do throws(StallWatchError) {
            self = .program(try file.program())
        } catch {
            throw Self.unchecked(path, error)
        }
    }

    private static func failure(_ path: String, _ reason: String) -> StartFailure {
        StartFailure(sentence: "\(path) \(reason)", status: StartFailure.notExecutable)
    }

    private static func unchecked(_ path: String, _ error: StallWatchError) -> StartFailure {
        failure(path, "cannot be checked, so it is not started: \(error.description)")
    }

    /// Returns the words of a script's first line, as the kernel splits them: the interpreter, and the rest as one argument.
    ///
    /// - Parameter start: The beginning of the file.
    /// - Returns: The words; `nil` if the file is no script.
    static func words(ofFirstLine start: [UInt8]) -> [String]? {
        guard start.starts(with: "#!".utf8) else { return nil }
        let line = String(decoding: start.dropFirst(2).prefix { $0 != UInt8(ascii: "\n") && $0 != 0 }, as: UTF8.self)
        let parts = line.split(maxSplits: 1, whereSeparator: isBlank)
        return parts.map { part in
            let end = part.lastIndex { !isBlank($0) }.map(part.index(after:)) ?? part.startIndex
            return String(part[..<end])
        }
    }

    private static func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }
}
