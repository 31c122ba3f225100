import StallWatchTesting
import Testing

@Suite(.noStalls(over: .milliseconds(100)))
struct WithTrait {
    @Test(arguments: 0..<1_000) func empty(_ number: Int) {}
}

@Suite
struct WithoutTrait {
    @Test(arguments: 0..<1_000) func empty(_ number: Int) {}
}
