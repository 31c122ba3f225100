/// The duration and the rate of a profile.
package struct ProfilePlan: Sendable, Equatable {
    /// The permitted durations, in seconds.
    package static let seconds = 1...300
    /// The permitted rates, in samples per second.
    package static let hertz = 1...100
    /// The rate that a profile has unless it is given: 50 samples per second.
    package static let standardHertz = 50

    /// The duration in seconds.
    package let seconds: Int
    /// The mean number of samples per second.
    package let hertz: Int

    /// Creates a plan; `nil` for a number out of its range.
    package init?(seconds: Int, hertz: Int) {
        guard Self.seconds.contains(seconds), Self.hertz.contains(hertz) else { return nil }
        self.seconds = seconds
        self.hertz = hertz
    }
}
