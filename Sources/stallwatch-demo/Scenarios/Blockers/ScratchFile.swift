import Dispatch
import Foundation
import Glibc

/// A file without a name that disappears when it is closed.
final class ScratchFile: Sendable {
    let descriptor: Int32
    /// The size in bytes.
    let size: Int

    /// Makes the file and flushes it to the disk, unless `isDirty`.
    init(megabytes: Int, isDirty: Bool = false) {
        var name = Array("./stallwatch-scratch-XXXXXX".utf8CString)
        descriptor = mkstemp(&name)
        unlink(name)
        size = megabytes << 20
        let block = [UInt8](repeating: 7, count: 1 << 20)
        for index in 0..<megabytes { pwrite(descriptor, block, block.count, index << 20) }
        if !isDirty { fsync(descriptor) }
    }

    /// Closes the file.
    ///
    /// Call it once, after the last use.
    func close() { _ = Glibc.close(descriptor) }
}
