extension StallReport.CompilerGenerated {
    /// Determines by the demangled name why the compiler generated the function; `nil` if it may be in the source.
    package init?(function: String) {
        let name = Self.dropping(["specialized ", "function signature specialization "], from: function)
        let first = name.utf8.first
        for (kind, prefixes) in Self.prefixes
        where prefixes.contains(where: { $0.utf8.first == first && name.hasPrefix($0) }) {
            self = kind
            return
        }
        for (kind, suffixes) in Self.suffixes where suffixes.contains(where: { name.hasSuffix($0) }) {
            self = kind
            return
        }
        guard name.containsBytes(of: "__derived_") else { return nil }
        self = .synthesized
    }

    /// Returns the name of the function that contains an autoclosure; `nil` for a name that is not an autoclosure's.
    package static func function(withAutoclosure name: String) -> String? {
        var rest = dropping(["specialized "], from: name)
        var isAutoclosure = false
        while rest.hasPrefix("implicit closure #"), let separator = rest.firstRange(of: " in ") {
            rest = String(rest[separator.upperBound...])
            isAutoclosure = true
        }
        return isAutoclosure ? rest : nil
    }

    /// Returns the name without those of `prefixes` that it begins with.
    ///
    /// Not a `Substring`, whose `hasPrefix(_:)` compares characters.
    static func dropping(_ prefixes: [String], from function: String) -> String {
        var name = function
        while let prefix = prefixes.first(where: { name.hasPrefix($0) }) { name.removeFirst(prefix.count) }
        return name
    }

    private static let prefixes: [(Self, [String])] = [
        (.merged, ["merged "]),
        (
            .thunk,
            [
                "thunk for ", "reabstraction thunk ", "partial apply for ", "partial apply forwarder for ",
                "protocol witness for ", "dispatch thunk of ", "vtable thunk for ", "@objc ", "keypath_get for ",
                "keypath_set for ", "key path getter for ", "key path setter for ", "dynamic replacement ",
                "protocol self-conformance witness for ", "distributed thunk ", "curry thunk of ",
                "back deployment thunk for ",
            ]
        ),
        (.outlined, ["outlined "]),
        (
            .macro,
            [
                "freestanding macro expansion #", "accessor macro @", "body macro @", "extension macro @",
                "conformance macro @", "member macro @", "member attribute macro @", "peer macro @", "preamble macro @",
            ]
        ),
        (
            .metadata,
            [
                "value witness ", "type metadata ", "nominal type descriptor ", "protocol witness table ",
                "lazy protocol witness table ", "associated type witness table ", "associated type metadata ",
                "base witness table ", "default associated ", "generic protocol witness table ", "metadata ",
                "initializeWithCopy for ", "initializeWithTake for ", "assignWithCopy for ", "assignWithTake for ",
                "initializeBufferWithCopyOfBuffer for ", "destroy for ", "getEnumTag for ",
                "destructiveInjectEnumTag for ", "destructiveProjectEnumData for ", "storeEnumTagSinglePayload for ",
                "getEnumTagSinglePayload for ", "instantiation function for ", "__swift_", "objectdestroy",
                "block_copy_helper", "block_destroy_helper",
            ]
        ),
    ]

    private static let suffixes: [(Self, [String])] = [
        (.accessor, [".unsafeMutableAddressor", ".unsafeAddressor", ".materializeForSet"])
    ]
}
