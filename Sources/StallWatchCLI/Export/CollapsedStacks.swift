/// Collapsed stacks, the input of flamegraph.pl, inferno and speedscope: one line a stack, functions from the outermost
/// to the innermost with semicolons between, a blank, and a whole number: microseconds of stalled time.
///
/// The first function is the loop, so that loops stand side by side. Lines are sorted, and each stack has one.
enum CollapsedStacks {
    static func data(_ profile: StallProfile) -> [UInt8] {
        var weights: [Stack: Int] = [:]
        for stall in profile.stalls {
            let loop = profile.loops[stall.loop]
            for share in stall.shares {
                let stack = Stack(loop: "\(loop.process) \(loop.label)", node: share.node)
                weights[stack, default: 0] += share.microseconds
            }
        }
        // Different lines of one function are one function here.
        var lines: [String: Int] = [:]
        for (stack, microseconds) in weights {
            let names = profile.table.path(of: stack.node).reversed().map { profile.table.function(ofFrame: $0).name }
            lines[([stack.loop] + names).map(word).joined(separator: ";"), default: 0] += microseconds
        }
        return lines.sorted { $0.key < $1.key }.reduce(into: []) { $0 += "\($1.key) \($1.value)\n".utf8 }
    }

    private struct Stack: Hashable {
        var loop: String
        var node: Int
    }

    /// A name without what would end it: the format has no way to write a semicolon or a line feed.
    private static func word(_ name: String) -> String {
        String(name.map { $0 == ";" ? ":" : $0.isNewline ? " " : $0 })
    }
}
