/// What makes two stalls the same: the path through the app's own functions, and the kind of loop.
///
/// It is made from names, never from addresses or lines, so it is the same under ASLR, in every process, and in a
/// rebuild that leaves the functions on the path alone. What such a rebuild may change is taken out first:
///
/// - *Compiler's variants* of a function (specialisations, merged functions, partial applications, C functions split or
///   cloned under a suffix such as `.cold` or `.constprop.0`): which there are depends on callers elsewhere.
/// - *Frames without code of the app's own* (reabstraction and dispatch thunks, protocol witnesses, outlined copies):
///   the optimiser adds and removes them as it likes.
/// - *Functions that were inlined*: which are depends on the optimiser, and whether it is known on debug information.
/// - *How deep a recursion was*: a function counts once, where it was seen first.
/// - *How the loop was reached*: functions outside the turn's callout have not stalled.
///
/// A closure keeps its number within its function: two closures of one function are two places, and their numbers
/// change only with that function. Overloads share one short name, and so a fingerprint.
///
/// Samples of a busy turn differ in their innermost frames. The path is followed inwards for as long as more than half
/// of the samples agree.
package struct Fingerprint: Equatable {
    /// A function of the app on a stack.
    package struct Place: Equatable {
        /// Its name as it was written, or where it is (build ID and offset) when it has no name.
        package var name: String
        /// Whether the name is a function's.
        var isFunction: Bool

        package init(
            name: String,
            isFunction: Bool
        ) {
            self.name = name
            self.isFunction = isFunction
        }
    }

    /// 16 lower-case hexadecimal digits.
    package let text: String

    /// - Parameters:
    ///   - loop: The kind of loop.
    ///   - paths: For each sample, the places inside the turn, innermost first.
    package init(loop: StallReport.LoopKind, paths: [[Place]]) {
        let paths = paths.map(Self.normalise).filter { !$0.isEmpty }
        let agreed = Self.agreedPath(paths)
        // The first line tells one rule for making fingerprints from the next one.
        text = hexadecimal(Self.hash((["1", loop.rawValue] + agreed).joined(separator: "\n").utf8), width: 16)
    }

    /// The names that count, outermost first.
    private static func normalise(_ places: [Place]) -> [String] {
        var seen: Set<String> = []
        return places.reversed().compactMap { place in
            guard let name = place.isFunction ? functionName(place.name) : place.name, seen.insert(name).inserted
            else { return nil }
            return name
        }
    }

    /// A function's name without what the compiler made of it; `nil` for a frame that is only the compiler's.
    package static func functionName(_ name: String) -> String? {
        var name = Substring(name)
        let variants = ["specialized ", "merged ", "partial apply for "]
        while let variant = variants.first(where: { name.hasPrefix($0) }) { name = name.dropFirst(variant.count) }
        let compilersOwn = [
            "thunk for ", "reabstraction thunk", "dispatch thunk of ", "protocol witness for ", "outlined ",
        ]
        guard !compilersOwn.contains(where: { name.hasPrefix($0) }) else { return nil }
        // A C symbol has no dot of its own, and a Swift or C++ name that has one also has a parenthesis or a space.
        if !name.contains(where: { $0 == "(" || $0 == " " || $0 == "<" }), !name.hasPrefix("."),
            let dot = name.firstIndex(of: "."),
            name[dot...].dropFirst().prefix(while: { $0 != "." }).isCloneSuffix
        {
            name = name[..<dot]
        }
        return String(name)
    }

    /// The path that more than half of the samples take, or the first one's if there is none.
    private static func agreedPath(_ paths: [[String]]) -> [String] {
        guard let first = paths.first else { return [] }
        var agreed: [String] = []
        var together = paths
        while true {
            var counts: [String: Int] = [:]
            for path in together where path.count > agreed.count { counts[path[agreed.count], default: 0] += 1 }
            guard let next = counts.max(by: { $0.value < $1.value }), next.value * 2 > paths.count else { break }
            together = together.filter { $0.count > agreed.count && $0[agreed.count] == next.key }
            agreed.append(next.key)
        }
        return agreed.isEmpty ? first : agreed
    }

    /// FNV-1a with 64 bits: the same in every process, where Swift's own hashing is seeded at random.
    package static func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
        bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }
}

extension Substring {
    /// What GCC and Clang put behind the dot in a symbol that they have cloned or split.
    fileprivate var isCloneSuffix: Bool {
        ["cold", "constprop", "isra", "part", "llvm", "resume", "destroy", "cleanup", "lto_priv", "localalias"]
            .contains { self == $0 }
    }
}

extension Fingerprint {
    /// The fingerprint of a report whose frames have been named.
    package init(_ report: StallReport) {
        let valid = report.samples.filter(\.isValid)
        let stacks = (valid.isEmpty ? report.samples : valid).compactMap { sample in
            sample.stack.map { report.stacks[$0].map { report.frames[$0] } }
        }
        self.init(
            loop: report.loop.kind,
            paths: stacks.map { stack in
                let turn = stack.prefix { StallReport.Callout(symbols: [$0.symbol]) == nil }
                    .filter { $0.isInlined != true && $0.isRuntimeFrame != true && $0.compilerGenerated == nil }
                // A turn that runs none of the app's code (a system library's own timer) is told by what it does run.
                let inApp = turn.contains(where: \.isInApp) ? turn.filter(\.isInApp) : turn
                return inApp.map { frame in
                    if let function = frame.function { return Place(name: function, isFunction: true) }
                    let image = frame.image.map { report.images[$0] }
                    return Place(name: "\(image?.buildID ?? image?.name ?? "")+\(frame.offset)", isFunction: false)
                }
            }
        )
    }
}
