import Glibc
import TestSupport
import Testing

/// Two files in a temporary directory, one of them with bytes in the page cache.
final class KernelCallFiles {
    static let length = 600 << 20

    private let directory: TemporaryDirectory
    let source: Int32
    let sink: Int32

    init() throws {
        directory = try TemporaryDirectory()
        source = open(directory.path + "/catalogue.bin", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        sink = open(directory.path + "/copy.bin", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(source >= 0 && sink >= 0)
        let block = [UInt8](repeating: 7, count: 1 << 20)
        for _ in 0..<(Self.length / block.count) { try #require(write(source, block, block.count) == block.count) }
    }

    deinit {
        close(source)
        close(sink)
    }

    func rewind() {
        ftruncate(sink, 0)
        lseek(source, 0, SEEK_SET)
        lseek(sink, 0, SEEK_SET)
    }
}
