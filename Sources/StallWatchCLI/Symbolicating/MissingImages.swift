import StallReports
import TextOutput

/// The images with frames that lack names, or lines in the app's own code.
struct MissingImages: Encodable {
    private(set) var reports = 0
    /// Frames that are in a stack.
    private(set) var frames = 0
    private(set) var named = 0
    private var known: [Key: Missing] = [:]

    private struct Key: Hashable {
        var name: String
        var buildID: String?
    }

    /// An image and what it lacks.
    struct Missing: Encodable, Sendable, Equatable {
        let image: String
        let path: String
        let buildID: String?
        /// Frames without a function.
        var unnamedFrames = 0
        /// Frames of the app's own code with a function and without a line.
        var framesWithoutLine = 0
        var reason: String?
    }

    /// Sorted by missing names, then by missing lines.
    var images: [Missing] {
        known.values.sorted {
            if $0.unnamedFrames != $1.unnamedFrames { return $0.unnamedFrames > $1.unnamedFrames }
            if $0.framesWithoutLine != $1.framesWithoutLine { return $0.framesWithoutLine > $1.framesWithoutLine }
            return ($0.image, $0.buildID ?? "") < ($1.image, $1.buildID ?? "")
        }
    }

    mutating func add(_ report: StallReport) {
        reports += 1
        for frame in report.frames {
            frames += 1
            if frame.function != nil { named += 1 }
            guard let index = frame.image, frame.function == nil || (frame.file == nil && frame.isInApp) else {
                continue
            }
            let image = report.images[index]
            let key = Key(name: image.name, buildID: image.buildID)
            var missing = known[key] ?? Missing(image: image.name, path: image.path, buildID: image.buildID)
            if frame.function == nil { missing.unnamedFrames += 1 } else { missing.framesWithoutLine += 1 }
            missing.reason = image.reason ?? frame.reason ?? missing.reason
            known[key] = missing
        }
    }

    private enum JSONKey: String, CodingKey { case reports, frames, named, images }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: JSONKey.self)
        try container.encode(reports, forKey: .reports)
        try container.encode(frames, forKey: .frames)
        try container.encode(named, forKey: .named)
        try container.encode(images, forKey: .images)
    }

    /// The text.
    func text(for terminal: Terminal) -> String {
        let share = frames == 0 ? "" : ", \(named) of \(counted(frames, "frame has", "frames have")) a name"
        let summary = "\(counted(reports, "report", "reports"))\(share).\n"
        guard !known.isEmpty else { return summary }
        var table = TextTable([
            .init("image", style: .bold), .init("build ID", isFlexible: true), .init("no name", .right),
            .init("no line", .right), .init("why", isFlexible: true),
        ])
        for image in images {
            table.add([
                image.image, image.buildID ?? "-", String(image.unnamedFrames), String(image.framesWithoutLine),
                image.reason ?? "-",
            ])
        }
        return "Some names or lines were not found:\n\n\(table.text(for: terminal))\n\(summary)"
    }
}
