import Testing

@testable import StallReports

@Suite struct HexadecimalTests {
    @Test(
        arguments: [
            (0, 0, "0"), (255, 0, "ff"), (255, 4, "00ff"), (0x12345, 2, "12345"), (0xa, 20, "0000000000000000000a"),
            (.max, 0, "ffffffffffffffff"),
        ] as [(UInt64, Int, String)])
    func aNumberHasLeadingZerosUpToTheWidth(value: UInt64, width: Int, text: String) {
        #expect(hexadecimal(value, width: width) == text)
    }

    @Test func numbersMatchTheStandardLibrary() {
        for shift in 0..<64 {
            let value = UInt64(0x9e37_79b9_7f4a_7c15) >> shift
            #expect(hexadecimal(value) == String(value, radix: 16))
        }
    }

    @Test func bytesHaveTwoDigitsEach() {
        #expect(hexadecimal([UInt8]()) == "")
        #expect(hexadecimal([0x00, 0x0a, 0x9f, 0xff] as [UInt8]) == "000a9fff")
    }
}
