import Foundation

/// The machine's setting kernel.yama.ptrace_scope.
package enum YamaScope {
    private static let path = "/proc/sys/kernel/yama/ptrace_scope"

    private static var current: Int? {
        FileManager.default.contents(atPath: path).flatMap {
            Int(String(decoding: $0, as: UTF8.self).filter(\.isNumber))
        }
    }

    /// Returns whether the scope can be set, and set back.
    ///
    /// Scope 3 cannot be left.
    package static func canBecome(_ scope: Int) -> Bool {
        guard let current, current < 3, scope < 3 else { return false }
        return FileManager.default.isWritableFile(atPath: path)
    }

    /// Runs `body` under a scope, and sets the machine's own one again.
    package static func with<Result>(_ scope: Int, _ body: () throws -> Result) throws -> Result {
        let before = current
        try set(scope)
        defer { if let before { try? set(before) } }
        return try body()
    }

    private static func set(_ scope: Int) throws {
        // Not atomically: the file cannot be replaced.
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.write(contentsOf: Data("\(scope)\n".utf8))
        try file.close()
    }
}
