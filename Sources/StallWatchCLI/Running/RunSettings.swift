import ArgumentParser
import Glibc

/// The settings of `stallwatch run`, from its options and from variables of the environment.
struct RunSettings: Equatable {
    /// The variables that do the same as the options.
    ///
    /// The program does not receive them.
    enum Variable: String, CaseIterable {
        case threshold = "STALLWATCH_THRESHOLD"
        case output = "STALLWATCH_OUTPUT"
        case loop = "STALLWATCH_LOOP"
        case children = "STALLWATCH_CHILDREN"
        case quiet = "STALLWATCH_QUIET"
    }

    var threshold = DurationArgument(milliseconds: 250)
    var output = "stalls"
    var loop = LoopChoice.auto
    var children = false
    var quiet = false

    /// - Parameters:
    ///   - options: What the command line has.
    ///   - environment: Returns the value of a variable.
    /// - Throws: `ValidationError` for a value that is wrong.
    init(_ options: Options, environment: (Variable) -> String?) throws {
        func value<Value>(_ variable: Variable, _ option: Value?, _ parse: (String) throws -> Value) throws -> Value? {
            if let option { return option }
            guard let text = environment(variable), !text.isEmpty else { return nil }
            do {
                return try parse(text)
            } catch let error as ValidationError {
                throw ValidationError("\(variable.rawValue): \(error.message)")
            }
        }
        threshold = try value(.threshold, options.threshold, DurationArgument.init(parsing:)) ?? threshold
        output = try value(.output, options.output) { $0 } ?? output
        loop = try value(.loop, options.loop, LoopChoice.init(parsing:)) ?? loop
        children = try value(.children, options.children ? true : nil, Self.flag) ?? false
        quiet = try value(.quiet, options.quiet ? true : nil, Self.flag) ?? false
        guard (5...86_400_000).contains(threshold.milliseconds) else {
            throw ValidationError("The threshold is \(threshold): give a value from 5ms to 24h.")
        }
        if output.isEmpty { throw ValidationError("The value '' of --output is empty: name a directory.") }
    }

    /// What the command line has; `nil` for an option that it does not have.
    struct Options {
        var threshold: DurationArgument?
        var output: String?
        var loop: LoopChoice?
        var children = false
        var quiet = false
    }

    private static func flag(_ text: String) throws -> Bool {
        switch text {
        case "1": true
        case "0": false
        default: throw ValidationError("'\(text)' is neither 1 nor 0.")
        }
    }

    /// The value of the variable that the preloaded library reads (CPreload.h).
    var text: String {
        "\(UInt64(threshold.milliseconds * 1_000_000)) \(loop.bits) \(children ? 1 : 0) \(quiet ? 1 : 0)"
    }
}
