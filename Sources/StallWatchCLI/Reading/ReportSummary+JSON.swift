import StallReports
import Foundation

extension ReportSummary {
    /// Reads a report's fields from its JSON.
    ///
    /// - Parameters:
    ///   - json: UTF-8.
    ///   - functions: Whether ``functions`` is filled in.
    /// - Throws: An error with the place of the first fault.
    init(json: [UInt8], functions: Bool) throws(UnreadableReport) {
        do {
            let data = Data(json)
            self = try JSONDecoder().decode(ReportSummary.self, from: data)
            if functions { self.functions = try JSONDecoder().decode(Stacks.self, from: data).functions }
        } catch let error as UnreadableReport {
            throw error
        } catch let error as DecodingError {
            throw UnreadableReport("this is not a stall report: \(ReportFault(error, in: json))")
        } catch {
            throw UnreadableReport("this is not a stall report: \(error)")
        }
    }

    private struct Stacks: Decodable {
        var frames: [Frame]?

        struct Frame: Decodable {
            var function: String?
        }

        var functions: [String] { (frames ?? []).compactMap(\.function) }
    }
}

extension ReportSummary: Decodable {
    private enum Field: String, CodingKey {
        case schemaVersion, id, kind, state, startedAt, durationMilliseconds, process, metadata, loop, callout
        case fingerprint, repeats, culprit, cause, context
    }

    private struct Loop: Decodable {
        var label: String
        var kind: StallReport.LoopKind
    }

    private struct Cause: Decodable {
        var kind: StallReport.CauseKind
    }

    private struct Context: Decodable {
        var label: String?
        var taskName: String?
    }

    init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: Field.self)
        let version = try fields.decode(Int.self, forKey: .schemaVersion)
        guard version <= StallReport.currentSchemaVersion else { throw UnreadableReport(newerVersion: version) }
        let loop = try fields.decode(Loop.self, forKey: .loop)
        let context = try fields.decodeIfPresent(Context.self, forKey: .context)
        self.init(
            id: try fields.decode(String.self, forKey: .id),
            kind: try fields.decode(StallReport.Kind.self, forKey: .kind),
            state: try fields.decode(StallReport.State.self, forKey: .state),
            startedAt: try fields.decode(Timestamp.self, forKey: .startedAt),
            durationMilliseconds: try fields.decode(Double.self, forKey: .durationMilliseconds),
            process: try fields.decode(Process.self, forKey: .process),
            metadata: try fields.decode([String: String].self, forKey: .metadata),
            loop: loop.label, loopKind: loop.kind,
            callout: try fields.decodeIfPresent(StallReport.Callout.self, forKey: .callout),
            fingerprint: try fields.decodeIfPresent(String.self, forKey: .fingerprint),
            repeats: try fields.decode(Int.self, forKey: .repeats),
            culprit: try fields.decodeIfPresent(Culprit.self, forKey: .culprit),
            cause: try fields.decodeIfPresent(Cause.self, forKey: .cause)?.kind,
            context: context?.label ?? context?.taskName
        )
        // Sums over many reports rely on these bounds.
        guard durationMilliseconds >= 0, durationMilliseconds < StallReport.maximumMilliseconds else {
            throw DecodingError.dataCorruptedError(
                forKey: .durationMilliseconds, in: fields, debugDescription: "the duration is negative or too large")
        }
        guard repeats >= 0 else {
            throw DecodingError.dataCorruptedError(
                forKey: .repeats, in: fields, debugDescription: "the count is negative")
        }
    }
}
