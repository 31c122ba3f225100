@testable import LinuxSupport
import Testing

struct CRC32Tests {
    @Test("the check value of the standard")
    func checkValue() {
        var checksum = CRC32()
        #expect(checksum.value == 0)
        checksum.add(Array("123456789".utf8))
        #expect(checksum.value == 0xcbf4_3926)
    }

    @Test("pieces give the same checksum as the whole")
    func pieces() {
        var whole = CRC32()
        whole.add(Array("stalled".utf8))
        var pieces = CRC32()
        pieces.add(Array("stall".utf8))
        pieces.add(Array("ed".utf8))
        #expect(pieces.value == whole.value)
    }
}
