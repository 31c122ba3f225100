import Foundation

/// The function that called a report's culprit: the next function of the app on the stack.
struct CulpritCaller: Decodable {
    private var culprit: Function?
    private var samples: [Sample]
    private var stacks: [[Int]]
    private var frames: [Frame]

    private struct Function: Decodable {
        var function: String
    }

    private struct Sample: Decodable {
        var stack: Int?
        var weightMilliseconds: Double?
    }

    private struct Frame: Decodable {
        var function: String?
        var isInApp: Bool
        var isRuntimeFrame: Bool?
    }

    /// The caller in a report's JSON that samples for most of the time show; `nil` if no stack shows one.
    ///
    /// Of equal ones, it is the first.
    static func name(in json: [UInt8]) -> String? {
        guard let report = try? JSONDecoder().decode(CulpritCaller.self, from: Data(json)),
            let culprit = report.culprit?.function
        else { return nil }
        var weights: [String: Double] = [:]
        let callers = report.samples.compactMap { sample in
            report.caller(of: culprit, in: sample).map { ($0, sample.weightMilliseconds ?? 0) }
        }
        for (caller, weight) in callers { weights[caller, default: 0] += weight }
        let most = weights.values.max()
        return callers.first { weights[$0.0] == most }?.0
    }

    private func caller(of culprit: String, in sample: Sample) -> String? {
        guard let stack = sample.stack, stacks.indices.contains(stack) else { return nil }
        let functions = stacks[stack].filter(frames.indices.contains).map { frames[$0] }
        guard let place = functions.firstIndex(where: { $0.function == culprit }) else { return nil }
        return functions[(place + 1)...].first {
            $0.isInApp && $0.isRuntimeFrame != true && $0.function != nil && $0.function != culprit
        }?.function
    }
}
