import Dispatch
import Foundation
import Glibc

/// A UDP server on the loopback interface that never answers.
final class SilentServer: Sendable {
    private let server: Int32
    let port: UInt16

    init() {
        let server = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(server, address, length)
                getsockname(server, address, &length)
            }
        }
        self.server = server
        port = UInt16(bigEndian: address.sin_port)
    }

    deinit { close(server) }
}
