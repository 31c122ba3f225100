extension Duration {
    /// The duration in milliseconds, with everything behind the point.
    var milliseconds: Double { self / .milliseconds(1) }

    /// The duration in seconds, with everything behind the point.
    var seconds: Double { self / .seconds(1) }
}
