/// The identity of a stall: the path through the app's own functions, and the kind of loop.
///
/// A fingerprint depends on names, never on addresses or lines. So it is the same under ASLR, in every process, and
/// after a rebuild that does not change the functions on the path. It ignores what such a rebuild may change:
///
/// - *Compiler variants* of a function (specializations, merged functions, partial applications, functions of C and C++
///   that the compiler split or cloned under a suffix such as `.cold` or `.constprop.0`): they depend on callers
///   elsewhere.
/// - *Compiler-generated frames* (reabstraction and dispatch thunks, protocol witnesses, outlined copies): the
///   optimizer adds and removes them freely.
/// - *Inlined functions*: inlining depends on the optimizer, and knowledge of it depends on debug information.
/// - *The depth of a recursion*: a function counts once, at its outermost frame.
/// - *The path to the loop*: functions outside the turn's callout have not stalled.
///
/// Of reports that are no stall, such as that of a loop that spins, the kind counts, too. Where no stack shows a function,
/// the loop's label, the cause, and the system call or the wait in the kernel count.
///
/// A closure keeps its number within its function: two closures of one function are two places, and their numbers
/// change only with that function. Overloads share one short name, and so one fingerprint.
///
/// Samples of a busy turn differ in their innermost frames. The path goes inward as long as samples for more than half of
/// the time agree.
package struct Fingerprint: Equatable {
    package struct Place: Equatable {
        /// The function's demangled name, or the build ID and offset of a frame without a name.
        package var name: String
        var isFunction: Bool
    }

    /// The fingerprint as 16 lowercase hexadecimal digits.
    package let text: String

    /// Takes each sample's places inside the turn, innermost first, and what else tells stalls apart (`sort`).
    ///
    /// Without weights all samples count the same.
    package init(loop: StallReport.LoopKind, sort: [String] = [], paths: [[Place]], weights: [Double]? = nil) {
        let weights = weights ?? paths.map { _ in 1 }
        let weighted = zip(paths.map(Self.normalise), weights).filter { !$0.0.isEmpty }
        let agreed = Self.agreedPath(weighted)
        // The first line is the version of the rules above.
        text = hexadecimal(Self.hash((["1", loop.rawValue] + sort + agreed).joined(separator: "\n").utf8), width: 16)
    }

    /// Returns whether the function only calls a closure of the app, whose code the optimizer has often moved into it.
    package static func forwardsClosure(_ frame: StallReport.Frame) -> Bool {
        frame.isInApp && frame.function.map { $0.hasPrefix("partial apply for ") && functionName($0) != nil } == true
    }

    /// Returns the names that count, outermost first.
    private static func normalise(_ places: [Place]) -> [String] {
        var seen: Set<String> = []
        return places.reversed().compactMap { place in
            guard let name = place.isFunction ? functionName(place.name) : place.name, seen.insert(name).inserted
            else { return nil }
            return name
        }
    }

    /// The words that GCC or Clang append, after a dot, to a symbol that they have cloned or split.
    private static let cloneSuffixes: Set = [
        "cold", "constprop", "isra", "part", "llvm", "resume", "destroy", "cleanup", "lto_priv", "localalias",
    ]

    /// Returns a function's name without the compiler's prefixes and suffixes; `nil` for a compiler-generated function.
    package static func functionName(_ name: String) -> String? {
        let variants = ["specialized ", "merged ", "partial apply for "]
        var name = StallReport.GeneratedCode.dropping(variants, from: name)
        guard StallReport.GeneratedCode(function: name) == nil else { return nil }
        // A C identifier contains no dot. A Swift or C++ name with a dot also has a parenthesis, a space or a "<".
        if !name.contains(where: { $0 == "(" || $0 == " " || $0 == "<" }), !name.hasPrefix("."),
            let dot = name.firstIndex(of: "."),
            cloneSuffixes.contains(String(name[dot...].dropFirst().prefix { $0 != "." }))
        {
            name = String(name[..<dot])
        }
        return withoutClones(name)
    }

    /// Returns a C++ function's name without the words that the demangler makes of such suffixes:
    /// `parse(char const*) [clone .isra.0] [clone .cold]`.
    private static func withoutClones(_ name: String) -> String {
        let separator = " [clone ."
        guard name.utf8.last == UInt8(ascii: "]") else { return name }
        let parts = name.split(separator: separator, omittingEmptySubsequences: false).map(String.init)
        // Other clones, such as the body of a parallel loop, are code of their own.
        let kept = parts.dropFirst().filter { part in
            !cloneSuffixes.contains(String(part.prefix { $0 != "." && $0 != "]" }))
        }
        return kept.reduce(parts.first ?? name) { $0 + separator + $1 }
    }

    /// Returns the path that samples for more than half of the time share; without one, the path with the most time.
    private static func agreedPath(_ paths: [(names: [String], weight: Double)]) -> [String] {
        let all = paths.reduce(0) { $0 + $1.weight }
        var agreed: [String] = []
        var together = paths
        while true {
            var weights: [String: Double] = [:]
            for (names, weight) in together where names.count > agreed.count {
                weights[names[agreed.count], default: 0] += weight
            }
            guard let next = weights.max(by: { $0.value < $1.value }), next.value * 2 > all else { break }
            together = together.filter { $0.names.count > agreed.count && $0.names[agreed.count] == next.key }
            agreed.append(next.key)
        }
        return agreed.isEmpty ? mostSeen(paths) : agreed
    }

    /// Returns the path with the most time; of equal ones, the first.
    private static func mostSeen(_ paths: [(names: [String], weight: Double)]) -> [String] {
        var weights: [[String]: Double] = [:]
        for (names, weight) in paths { weights[names, default: 0] += weight }
        let most = weights.values.max()
        return paths.first { weights[$0.names] == most }?.names ?? []
    }

    /// The 64-bit FNV-1a hash: the same in every process, unlike Swift's own, whose seed is random.
    package static func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
        bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }

    /// What tells a report apart whose stacks may show only the loop: its kind, if it is no stall; of a loop that spins,
    /// whether it ran without sources, and the kind of the descriptor that was always readable.
    private static func sort(of report: StallReport) -> [String] {
        guard report.kind != .stall else { return [] }
        // "descriptor 7, pipe:[4711]": the numbers are others the next time.
        let descriptor = report.activity?.readyDescriptor?.filter { !$0.isNumber }
        let kind = descriptor.map { $0.contains(", /") ? "file" : $0 }
        return [report.kind.rawValue, report.activity?.isModeEmpty == true ? "empty" : nil, kind].compactMap(\.self)
    }

    /// What tells a report without a path apart; without numbers and addresses, which are others the next time.
    private static func traits(of report: StallReport) -> [String] {
        [report.loop.label, report.causeWord, report.cause?.systemCall?.name ?? report.cause?.waitChannel ?? ""]
    }

    /// The fingerprint of a symbolicated report, whose indices must be valid (``StallReport/fault``).
    package init(_ report: StallReport) {
        let samples = report.samples.filter { $0.isValid && $0.stack != nil }
        let stacks = samples.compactMap { $0.stack.map(report.provenFrames) }
        let weights = samples.compactMap(\.weightMilliseconds)
        let paths = stacks.map { stack -> [Place] in
            let turn = stack.prefix { StallReport.Callout(symbol: $0.symbol) == nil }
                .filter { $0.isInlined != true && ($0.isWritten || Self.forwardsClosure($0)) }
            // A turn without the app's code (a system library's own timer) is identified by all of its functions.
            let inApp = turn.contains(where: \.isInApp) ? turn.filter(\.isInApp) : turn
            return inApp.map { frame in
                if let function = frame.function { return Place(name: function, isFunction: true) }
                let image = frame.image.map { report.images[$0] }
                return Place(name: "\(image?.buildID ?? image?.name ?? "")+\(frame.offset)", isFunction: false)
            }
        }
        // Else all stalls without a path would be repeats of each other.
        let hasPath = paths.contains { !Self.normalise($0).isEmpty }
        self.init(
            loop: report.loop.kind, sort: Self.sort(of: report) + (hasPath ? [] : Self.traits(of: report)),
            paths: paths, weights: weights.count == samples.count ? weights : nil
        )
    }
}

extension StallReport.GeneratedCode {
    /// Determines by the demangled name why the compiler generated the function; `nil` if it may be in the source.
    package init?(function: String) {
        let name = Self.dropping(["specialized ", "function signature specialization "], from: function)
        let first = name.utf8.first
        for (kind, prefixes) in generatedPrefixes
        where prefixes.contains(where: { $0.utf8.first == first && name.hasPrefix($0) }) {
            self = kind
            return
        }
        if accessorSuffixes.contains(where: { name.hasSuffix($0) }) {
            self = .accessor
        } else if name.containsBytes(of: "__derived_") {
            self = .synthesized
        } else {
            return nil
        }
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

    /// The name without its prefixes; no `Substring`, whose `hasPrefix(_:)` compares characters.
    static func dropping(_ prefixes: [String], from function: String) -> String {
        var name = function
        while let prefix = prefixes.first(where: { name.hasPrefix($0) }) { name.removeFirst(prefix.count) }
        return name
    }
}

/// How the demangler begins the names of compiler-generated functions.
private let generatedPrefixes: KeyValuePairs<StallReport.GeneratedCode, [String]> = [
    .merged: ["merged "],
    .thunk: [
        "thunk for ", "reabstraction thunk ", "partial apply for ", "partial apply forwarder for ",
        "protocol witness for ", "dispatch thunk of ", "vtable thunk for ", "@objc ", "keypath_get for ",
        "keypath_set for ", "key path getter for ", "key path setter for ", "dynamic replacement ",
        "protocol self-conformance witness for ", "distributed thunk ", "curry thunk of ",
        "back deployment thunk for ",
    ],
    .outlined: ["outlined "],
    .macro: [
        "freestanding macro expansion #", "accessor macro @", "body macro @", "extension macro @",
        "conformance macro @", "member macro @", "member attribute macro @", "peer macro @", "preamble macro @",
    ],
    .metadata: [
        "value witness ", "type metadata ", "nominal type descriptor ", "protocol witness table ",
        "lazy protocol witness table ", "associated type witness table ", "associated type metadata ",
        "base witness table ", "default associated ", "generic protocol witness table ", "metadata ",
        "initializeWithCopy for ", "initializeWithTake for ", "assignWithCopy for ", "assignWithTake for ",
        "initializeBufferWithCopyOfBuffer for ", "destroy for ", "getEnumTag for ",
        "destructiveInjectEnumTag for ", "destructiveProjectEnumData for ", "storeEnumTagSinglePayload for ",
        "getEnumTagSinglePayload for ", "instantiation function for ", "__swift_", "objectdestroy",
        "block_copy_helper", "block_destroy_helper",
    ],
]

private let accessorSuffixes = [".unsafeMutableAddressor", ".unsafeAddressor", ".materializeForSet"]
