internal import CSymbols
import Glibc
import LinuxSupport
package import StallReports

/// Finds the files that hold an image's symbols and debug information: itself, and what was stripped off it.
///
/// A file counts only if it has the image's build ID. Where there are no build IDs, the image's own file counts if it has
/// the contents that were mapped, and a debug file if it has the CRC-32 that the image's `.gnu_debuglink` names. The network is used only where a debuginfod client is given.
struct DebugFiles {
    /// Where distributions put debug files (Debian, Fedora, Arch).
    static let systemDirectory = "/usr/lib/debug"
    /// Bytes of a debug file without a build ID that are read for its checksum.
    static let maximumChecksumBytes = UInt64(1) << 30

    /// Directories looked in, in order: laid out as ``systemDirectory`` is, or just holding the files.
    let directories: [String]
    private let debuginfod: DebuginfodClient?
    /// The path by which the file of this process's executable is opened.
    private let ownExecutable: String

    init(
        directories: [String] = [], debuginfod: DebuginfodClient? = nil, ownExecutable: String = OwnExecutable.file
    ) {
        self.directories = directories + [Self.systemDirectory]
        self.debuginfod = debuginfod
        self.ownExecutable = ownExecutable
    }

    func file(of image: ImageIdentity) throws(Missing) -> ELFFile {
        let path = image.isOwnExecutable ? ownExecutable : image.path
        let file: ELFFile
        do {
            file = try ELFFile(path: path)
        } catch {
            throw Missing(reason: error.errno.map { "its file: \(String(cString: strerror($0)))" } ?? error.message)
        }
        let buildID: String?
        do {
            buildID = try file.buildID()
        } catch {
            throw Missing(reason: "its file is not a readable ELF file")
        }
        // The image in memory is what counts: an update may have put another file in its place.
        guard buildID == image.buildID else {
            throw Missing(reason: "its file has been replaced: the build ID is another")
        }
        // /proc leads to the file of the running executable, wherever it is. One that was started as an argument of the
        // dynamic linker has only its path.
        let isMapped = image.isOwnExecutable && path.hasPrefix("/proc/")
        if buildID == nil, !isMapped, image.contentHash == nil || file.contentHash() != image.contentHash {
            throw Missing(reason: "its file may have been replaced: it has no build ID, and other contents")
        }
        return file
    }

    /// The debug file of an image, of which `file` is the image's own if that was found.
    func debugFile(of image: ImageIdentity, file: ELFFile?) -> ELFFile? {
        let link = (try? file?.debugLink()).flatMap { $0 }
        for path in candidates(for: image, link: link?.name) {
            guard let candidate = try? ELFFile(path: path) else { continue }
            if let buildID = image.buildID {
                if (try? candidate.buildID()) == buildID { return candidate }
            } else if let link, (try? candidate.checksum()) == link.checksum {
                return candidate
            }
        }
        return image.buildID.flatMap { debuginfod?.debugFile(buildID: $0) }
    }

    struct Missing: Error, Equatable {
        var reason: String
    }

    private func candidates(for image: ImageIdentity, link: String?) -> [String] {
        var paths: [String] = []
        let (folder, name) = (directory(of: image.path), fileName(image.path))
        if let buildID = image.buildID, buildID.count > 2 {
            let tail = "/\(buildID.prefix(2))/\(buildID.dropFirst(2)).debug"
            for root in directories { paths += ["\(root)/.build-id\(tail)", root + tail] }
        }
        if let link {
            // GDB's order ("Debugging Information in Separate Files"): beside the image, in .debug, in the directories.
            paths += ["\(folder)/\(link)", "\(folder)/.debug/\(link)"]
            for root in directories { paths += ["\(root)\(folder)/\(link)", "\(root)/\(link)"] }
        }
        for root in directories { paths += ["\(root)\(image.path).debug", "\(root)/\(name).debug", "\(root)/\(name)"] }
        return paths
    }
}

extension ELFFile {
    /// Opens the file of an image, if it is still the one that was mapped.
    package static func mapped(by image: ImageIdentity) throws -> ELFFile { try DebugFiles().file(of: image) }

    static let maximumDebugFrameBytes = 2 << 20

    /// The section `.debug_frame` of an image, from its file or its debug file; `nil` if there is none, or it is compressed.
    package static func debugFrame(of image: ImageIdentity) -> [UInt8]? {
        let files = DebugFiles()
        guard let file = try? files.file(of: image) else { return nil }
        // Without a build ID, all of a debug file would be read for its checksum.
        let debugFile = image.buildID == nil ? nil : files.debugFile(of: image, file: file)
        for file in [file, debugFile] {
            guard let file, let section = try? file.namedSections()[".debug_frame"] else { continue }
            let isCompressed = section.sh_flags & UInt64(SHF_COMPRESSED) != 0
            return isCompressed ? nil : try? file.bytes(of: section, atMost: maximumDebugFrameBytes)
        }
        return nil
    }

    /// The CRC-32 (IEEE 802.3, reflected) of the whole file, as `.gnu_debuglink` has it.
    package func checksum() throws(StallWatchError) -> UInt32 {
        let size = try size()
        guard size <= DebugFiles.maximumChecksumBytes else {
            throw StallWatchError(.unreadableImage, "\(path) is too large for its checksum to be computed")
        }
        var checksum = CRC32()
        var place = UInt64(0)
        while place < size {
            let piece = try bytes(at: place, count: min(size - place, 1 << 20), atMost: 1 << 20)
            checksum.add(piece)
            place += UInt64(piece.count)
        }
        return checksum.value
    }
}

/// Asks debuginfod servers for debug files, until a total time limit is reached.
final class DebuginfodClient {
    /// In nanoseconds of CLOCK_MONOTONIC, for all queries until it is set anew.
    var deadline: UInt64 = 0
    private var isExhausted = false

    /// The debug file of a build ID, or `nil` if no server has it, or none answered in time.
    func debugFile(buildID: String) -> ELFFile? {
        let digits = Array(buildID.utf8)
        let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
            UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)
        }
        guard !isExhausted, bytes.count * 2 == digits.count else { return nil }
        let descriptor = csymbols_debuginfod_open(bytes, bytes.count, deadline)
        // A server that does not answer is not asked again, nor is a library that is not there.
        isExhausted = descriptor == -ETIME || descriptor == -ENOSYS
        return descriptor < 0 ? nil : ELFFile(descriptor: descriptor, path: "the debug file of \(buildID)")
    }
}
