/// A file for speedscope (speedscope.app): its own JSON format with one sampled profile for each loop.
///
/// The stalls of a loop follow one another without the time between them, in microseconds of stalled time. What each
/// field means is documented in speedscope's `src/lib/file-format-spec.ts`.
enum SpeedscopeProfile {
    static func data(_ profile: StallProfile, exporter: String) -> [UInt8] {
        let table = profile.table
        // One frame per function: speedscope merges equal frame indices and shows one line for them.
        let frames = table.functions.map { function in
            JSONText.Value.object(
                [("name", .string(function.name))] + (function.file.map { [("file", .string($0))] } ?? [])
            )
        }
        let profiles = zip(profile.loops, profile.stallsByLoop).map { loop, stalls in
            let shares = stalls.flatMap(\.shares)
            return JSONText.Value.object([
                ("type", .string("sampled")),
                ("name", .string("\(loop.process) (\(loop.pid)) \(loop.label)")),
                ("unit", .string("microseconds")),
                ("startValue", .int(0)),
                ("endValue", .int(shares.reduce(0) { $0 + $1.microseconds })),
                (
                    "samples",
                    .array(
                        shares.map { share in
                            .ints(table.path(of: share.node).reversed().map { table.frames[$0].function })
                        }
                    )
                ),
                ("weights", .ints(shares.map(\.microseconds))),
            ])
        }
        let file = JSONText.Value.object([
            ("$schema", .string("https://www.speedscope.app/file-format-schema.json")),
            ("exporter", .string(exporter)),
            ("name", .string(profile.content == .stalls ? "Stalled time" : "Sampled time")),
            ("activeProfileIndex", .int(0)),
            ("shared", .object([("frames", .array(frames))])),
            ("profiles", .array(profiles)),
        ])
        return JSONText(file).bytes + [UInt8(ascii: "\n")]
    }
}
