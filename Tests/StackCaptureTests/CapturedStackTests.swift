import Testing

@testable import StackCapture

@Suite struct CapturedFrameTests {
    @Test func aReturnAddressIsLookedUpInsideTheCall() {
        #expect(CapturedStack.Frame(address: 0x1000, isExact: false).lookupAddress == 0xfff)
    }

    @Test func anExactAddressIsLookedUpUnchanged() {
        #expect(CapturedStack.Frame(address: 0x1000, isExact: true).lookupAddress == 0x1000)
    }

    @Test func aNullReturnAddressStaysNull() {
        #expect(CapturedStack.Frame(address: 0, isExact: false).lookupAddress == 0)
    }
}
