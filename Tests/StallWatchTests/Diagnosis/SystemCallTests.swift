import Testing

@testable import StallWatch

@Suite struct SystemCallTests {
    @Test func bothTablesNameTheirCalls() {
        // The numbers of the headers that syscall(2) names.
        #expect(SystemCallNames.x86_64.name(202) == "futex")
        #expect(SystemCallNames.x86_64.name(74) == "fsync")
        #expect(SystemCallNames.x86_64.name(424) == "pidfd_send_signal")
        #expect(SystemCallNames.x86_64.name(400) == nil)
        #expect(SystemCallNames.aarch64.name(98) == "futex")
        #expect(SystemCallNames.aarch64.name(82) == "fsync")
        #expect(SystemCallNames.aarch64.name(25) == "fcntl")
        #expect(SystemCallNames.aarch64.name(-1) == nil)
    }

    @Test func socketAddressesAreWrittenAsUsual() {
        #expect(SocketName.decode([2, 0, 0x1f, 0x90, 127, 0, 0, 1]) == "127.0.0.1:8080")
        #expect(SocketName.decode([10, 0, 0, 80, 0, 0, 0, 0] + [UInt8](repeating: 0, count: 15) + [1]) == "[::1]:80")
        #expect(SocketName.decode([1, 0] + Array("/run/x".utf8) + [0, 9]) == "/run/x")
        #expect(SocketName.decode([1, 0, 0] + Array("x".utf8)) == "@x")
        #expect(SocketName.decode([1, 0]) == nil)
    }
}
