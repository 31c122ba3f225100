import Glibc
import Testing

/// The scenarios, loaded into this process.
struct AsyncLibrary: Sendable {
    private typealias Start =
        @convention(c) (
            UnsafePointer<CChar>, @convention(c) () -> Void, @convention(c) () -> Void
        ) -> Bool

    /// The path of the loaded library.
    let path: String
    /// The path of the library with symbols.
    let symbols: String
    private let start: Start

    init(path: String, symbols: String) throws {
        self.path = path
        self.symbols = symbols
        let handle = try #require(dlopen(path, RTLD_NOW | RTLD_LOCAL), "\(String(cString: dlerror()))")
        let function = try #require(dlsym(handle, "start_async_scenario"))
        // The type matches the declaration of that name in async_scenarios.swift.
        start = unsafeBitCast(function, to: Start.self)
    }

    /// Starts a scenario that stalls on CPU or in a system call.
    func start(_ scenario: AsyncScenario, blocked: Bool) -> Bool {
        start(
            scenario.name, blocked ? { StallGate.shared.block() } : { StallGate.shared.spin() },
            { StallGate.shared.finish() }
        )
    }
}
