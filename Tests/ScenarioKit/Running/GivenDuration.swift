import ArgumentParser
import StallReports

/// A duration on the command line: a number and one of the units of ``DurationText``.
struct GivenDuration: Equatable, CustomStringConvertible {
    static let standardThreshold = GivenDuration(description: "250ms", duration: .milliseconds(250))

    let description: String
    let duration: Duration

    private init(description: String, duration: Duration) {
        self.description = description
        self.duration = duration
    }

    /// Reads a threshold: 20 ms to 60 s; an error's message continues the parser's, which names the value.
    static func threshold(_ text: String) throws(ValidationError) -> GivenDuration {
        try GivenDuration(
            text, from: .milliseconds(20), to: .seconds(60), "20ms to 60s: a scenario takes up to 16 of them")
    }

    /// Reads the length of a long run: a second to a week; the same holds for an error's message.
    static func length(_ text: String) throws(ValidationError) -> GivenDuration {
        try GivenDuration(text, from: .seconds(1), to: .seconds(7 * 24 * 3600), "1s to 168h")
    }

    private init(_ text: String, from least: Duration, to most: Duration, _ range: String) throws(ValidationError) {
        let duration: Duration
        do throws(DurationText.Fault) {
            duration = try DurationText.duration(text)
        } catch {
            throw ValidationError(error.description)
        }
        guard (least...most).contains(duration) else {
            throw ValidationError("it is out of range. Choose a value from \(range).")
        }
        self.init(description: text, duration: duration)
    }
}
