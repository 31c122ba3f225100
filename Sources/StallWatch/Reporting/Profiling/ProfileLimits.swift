/// What a profile may still keep, over all of its threads.
///
/// With these limits its answer stays below the longest one: a run takes some 230 bytes, a frame with its name 250, and
/// its place in a stack 6.
struct ProfileLimits {
    /// The most runs of equal samples.
    static let runs = 16_000
    /// The most different stacks.
    static let stacks = 2_000
    /// The most frames of these stacks.
    static let frames = 100_000
    /// The reason for a stack that is not kept.
    static let unkeptStack = "the profile has too many different stacks"

    private var runsLeft = Self.runs
    private var stacksLeft = Self.stacks
    private var framesLeft = Self.frames
    /// The number of samples whose stacks were not kept.
    private(set) var unkept = 0

    /// Takes the room for a run; `false` if there is none.
    mutating func takeRun() -> Bool {
        guard runsLeft > 0 else { return false }
        runsLeft -= 1
        return true
    }

    /// Takes the room for a stack; `false`, and a count, if there is none.
    mutating func takeStack(ofFrames count: Int) -> Bool {
        guard stacksLeft > 0, framesLeft >= count else {
            unkept += 1
            return false
        }
        stacksLeft -= 1
        framesLeft -= count
        return true
    }
}
