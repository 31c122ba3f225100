import TestSupport
import Testing

/// C++ exceptions of the host program do not go through libunwind.
///
/// libunwind also exports `_Unwind_RaiseException`. If the program's own link line names libunwind, every C++ exception
/// goes through it and takes twenty times as long.
@Suite struct ExceptionOwnerTests {
    @Test func exceptionsOfTheHostProgramGoThroughLibgcc() throws {
        let directory = try TemporaryDirectory()
        let owner = try Command(
            program: try Command.product("stallwatch-demo"),
            environment: ["LD_PRELOAD": try Preload.exceptionOwner.make(in: directory)]
        ).succeed()
        #expect(owner.contains("/libgcc_s.so.1"), "\(owner)")
    }
}
