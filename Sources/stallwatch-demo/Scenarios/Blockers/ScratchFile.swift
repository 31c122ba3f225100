import Dispatch
import Foundation
import Glibc

/// A file that has no name and goes away when it is closed.
final class ScratchFile: Sendable {
    let descriptor: Int32
    /// In bytes.
    let size: Int

    /// All of it is on the disk, unless it is to stay in memory for now.
    init(megabytes: Int, isDirty: Bool = false) {
        var name = Array("./stallwatch-scratch-XXXXXX".utf8CString)
        descriptor = mkstemp(&name)
        unlink(name)
        size = megabytes << 20
        let block = [UInt8](repeating: 7, count: 1 << 20)
        for index in 0..<megabytes { pwrite(descriptor, block, block.count, index << 20) }
        if !isDirty { fsync(descriptor) }
    }

    /// Ends its life.
    ///
    /// To be called once, when nobody uses it any more.
    func close() { _ = Glibc.close(descriptor) }
}
