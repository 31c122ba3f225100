/// A library of the system or of the toolchain, by the names of its functions.
///
/// If the library is linked into the executable, only the names show where a function comes from.
package enum RuntimeLibrary: Sendable {
    case c, cxx, dispatch, swift, foundation

    /// The library that has a function with that symbol; `nil` for any other function.
    ///
    /// Names alone: an app may have a C function that begins the same. Where debug information says where a function was
    /// compiled, that counts.
    package init?(symbol: String) {
        for (library, prefixes) in Self.prefixes where prefixes.contains(where: { symbol.hasPrefix($0) }) {
            self = library
            return
        }
        // Functions of the runtime that are in no namespace: `_ZL23swift_job_runImpl…`, or with a type of the runtime's.
        let isOfRuntime =
            symbol.hasPrefix("_Z")
            && (symbol.contains("N5swift") || symbol.dropFirst(3).drop(while: \.isNumber).hasPrefix("swift_"))
        if isOfRuntime {
            self = .swift
        } else if Self.isCoreFoundation(symbol) {
            self = .foundation
        } else {
            return nil
        }
    }

    /// Whether the function is of a library of the system or of the toolchain, also one written in Swift.
    package static func contains(_ symbol: String) -> Bool {
        if let module = SwiftModule.of(symbol) { return SwiftModule.ofLibraries.contains(module) }
        return RuntimeLibrary(symbol: symbol) != nil
    }

    private static let prefixes: [(RuntimeLibrary, [String])] = [
        (.dispatch, ["dispatch_", "_dispatch_", "__DISPATCH_", "_os_object_", "_Block_"]),
        (
            .swift,
            [
                "swift_", "_swift_", "__swift_", "_ZN5swift", "_ZNK5swift", "_ZNSt6__once5swift",
                "_ZN12_GLOBAL__N_15swift",
                "_ZZN5swift", "_ZZNK5swift",
            ]
        ),
        // ICU of Foundation: a namespace and C functions that end with its version.
        (.foundation, ["_ZN6icu_", "_ZNK6icu_", "_CF", "__CF", "_NS", "__NS", "_foundation_"]),
        (
            .cxx,
            [
                "_ZSt", "_ZNSt", "_ZNKSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx", "_ZNSa", "_ZNSs", "_ZNKSs", "__cxa_",
                "_ZN10__cxxabiv1", "_Unwind_", "__gxx_",
            ]
        ),
        (.c, ["__libc_", "__GI_", "pthread_", "__pthread_", "___pthread_", "_dl_", "_IO_", "__lll_", "__futex_"]),
    ]

    /// `CFRunLoopRunSpecific`: CoreFoundation's prefix before a capital letter and a small one.
    private static func isCoreFoundation(_ symbol: String) -> Bool {
        let name = symbol.utf8.dropFirst(2).prefix(2)
        return symbol.hasPrefix("CF") && name.count == 2 && name.first.map(isCapital) == true
            && name.last.map { !isCapital($0) } == true
    }

    private static func isCapital(_ byte: UInt8) -> Bool { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte }
}
