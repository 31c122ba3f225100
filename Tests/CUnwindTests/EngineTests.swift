import CUnwindTestSupport
import TestSupport
import Testing

/// A check of the engine in C, which `Tests/aarch64` runs without Swift, too.
struct EngineCheck: CustomTestStringConvertible, Sendable {
    private let index: Int

    private var row: cunwind_test_check { cunwind_test_check_at(index) }

    static func about(_ topic: cunwind_test_topic) -> [EngineCheck] {
        (0..<cunwind_test_check_count()).map(EngineCheck.init).filter { $0.row.topic == topic }
    }

    var testDescription: String { "\(String(cString: row.name)) (\(row.argument))" }

    func callAsFunction() {
        var hasPassed = false
        let text = String(cString: cunwind_test_run_check(index, &hasPassed))
        print("\(testDescription): \(text)")
        let mark = "not run: "
        if text.hasPrefix(mark) { return notRun("\(testDescription): \(text.dropFirst(mark.count))") }
        #expect(hasPassed, "\(text)")
    }
}

@Suite(.serialized, .needsPtrace) struct EngineTests {
    @Test(arguments: EngineCheck.about(CUNWIND_TEST_STATES)) func `the stack is whole in each state`(check: EngineCheck)
    {
        check()
    }

    @Test(arguments: EngineCheck.about(CUNWIND_TEST_VFORK))
    func `a thread in uninterruptible sleep is read and cannot be stopped`(check: EngineCheck) { check() }

    @Test(arguments: EngineCheck.about(CUNWIND_TEST_HELPERS))
    func `a disturbed helper leaves nothing stopped or behind`(check: EngineCheck) { check() }

    @Test(arguments: EngineCheck.about(CUNWIND_TEST_SIGNALS))
    func `every signal arrives, and captures by signal work`(check: EngineCheck) { check() }

    @Test(arguments: EngineCheck.about(CUNWIND_TEST_REFUSALS))
    func `what is refused or gone does no harm`(check: EngineCheck) { check() }

    @Test(arguments: EngineCheck.about(CUNWIND_TEST_MEMORY))
    func `memory is read by each access, and never torn`(check: EngineCheck) { check() }

    @Test(arguments: EngineCheck.about(CUNWIND_TEST_IMAGES))
    func `images are listed without the linker's lock`(check: EngineCheck) { check() }

    @Test(arguments: EngineCheck.about(CUNWIND_TEST_LOCKS))
    func `threads that hold locks lose nothing`(check: EngineCheck) { check() }

    @Test(arguments: EngineCheck.about(CUNWIND_TEST_CALLS))
    func `a plain signal interrupts calls`(check: EngineCheck) { check() }
}

/// A million rounds on one thread, which other tests may run beside.
@Suite struct FuzzTests {
    @Test(arguments: EngineCheck.about(CUNWIND_TEST_DAMAGE))
    func `damaged stacks and tables are unwound`(check: EngineCheck) { check() }
}

@Suite(.serialized) struct UnwinderTests {
    @Test(arguments: EngineCheck.about(CUNWIND_TEST_UNWINDERS))
    func `libunwind and the built-in stepper agree`(check: EngineCheck) { check() }
}
