extension Duration {
    /// The duration in milliseconds, with its fraction.
    var milliseconds: Double { self / .milliseconds(1) }

    /// The duration in seconds, with its fraction.
    var seconds: Double { self / .seconds(1) }
}
