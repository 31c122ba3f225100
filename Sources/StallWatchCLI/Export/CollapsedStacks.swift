/// Collapsed stacks, the input of flamegraph.pl, inferno and speedscope.
///
/// Each stack has one line: its functions from the outermost to the innermost, separated by semicolons, then a blank and
/// the stalled time in whole microseconds. The first function is the loop, so that loops appear side by side. Lines are
/// sorted.
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
        // The format has functions without lines, so frames of one function at different lines are merged.
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

    /// A name without semicolons and line feeds, which the format cannot escape.
    private static func word(_ name: String) -> String {
        String(name.map { $0 == ";" ? ":" : $0.isNewline ? " " : $0 })
    }
}
