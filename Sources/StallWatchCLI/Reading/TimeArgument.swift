import StallReports
import ArgumentParser
import Glibc

/// A point in time on the command line.
struct TimeArgument: Sendable, Equatable {
    let time: Timestamp

    /// Reads a day, a day with a time, or an age.
    init(parsing text: String) throws {
        try self.init(parsing: text, now: Timestamp(microsecondsSince1970: Int64(Glibc.time(nil)) * 1_000_000))
    }

    init(parsing text: String, now: Timestamp) throws {
        if let ago = try? DurationArgument(parsing: text), ago.milliseconds < 1e14 {
            time = Timestamp(microsecondsSince1970: now.microsecondsSince1970 - Int64(ago.milliseconds * 1_000))
            return
        }
        let plain = (text.hasSuffix("Z") ? text.dropLast() : text[...]).map { $0 == " " ? "T" : String($0) }.joined()
        let form = "0000-01-01T00:00:00.000000"
        guard plain.count >= "2026-11-21".count, plain.count <= form.count,
            let time = Timestamp(plain + form.dropFirst(plain.count) + "Z")
        else {
            throw ValidationError(
                "'\(text)' is not a time. Give one such as 2026-11-21, 2026-11-21T08:00 or 2026-11-21T08:00:00.5Z (UTC), or an "
                    + "age such as 2h."
            )
        }
        self.time = time
    }
}
