import StackCapture
import Testing

@testable import StallWatch

/// Names of callouts by return addresses, for a CoreFoundation that does not have them.
@Suite struct CalloutNamesTests {
    private let timer = "__CFRUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION__"
    private let code = CapturedStack.Frame(address: 0x100, isExact: false)

    @Test func `a return address names its function`() {
        let names = CalloutNames(names: [0x100: timer])
        let callee = CapturedStack.Frame(address: 0x900, isExact: false)
        #expect(names.name(of: code, calling: callee) == timer)
        #expect(names.name(of: callee, calling: code) == nil)
    }

    @Test func `the caller of libdispatch's function is the main queue's callout`() {
        let names = CalloutNames(names: [0x300: timer], mainQueueFunction: 0x900..<0x980)
        let inside = CapturedStack.Frame(address: 0x910, isExact: false)
        let outside = CapturedStack.Frame(address: 0x9a0, isExact: false)
        #expect(names.name(of: code, calling: inside) == "__CFRUNLOOP_IS_SERVICING_THE_MAIN_DISPATCH_QUEUE__")
        #expect(names.name(of: code, calling: outside) == nil)
    }

    @Test func `nothing has a name before anything was learned`() {
        #expect(CalloutNames().name(of: code, calling: code) == nil)
    }
}
