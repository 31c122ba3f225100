import Foundation
import TestSupport

/// The places of the demo's functions in its source files.
struct DemoSources {
    private struct Place {
        var file: String
        /// The type, if the function is a method.
        var type: Substring?
        var name: Substring
        var lines: ClosedRange<Int>
    }

    private var places: [Place] = []

    init() throws {
        let sources = Repository.root.appendingPathComponent(
            "Sources")
        for folder in ["stallwatch-demo", "CDemo"] {
            let directory = sources.appendingPathComponent(folder)
            let names = FileManager.default.enumerator(atPath: directory.path)?.compactMap { $0 as? String } ?? []
            for name in names where [".swift", ".c", ".cpp"].contains(where: { name.hasSuffix($0) }) {
                let file = directory.appendingPathComponent(name)
                read(try String(contentsOf: file, encoding: .utf8), of: "\(folder)/\(name)")
            }
        }
    }

    /// Returns whether a line belongs to a function: `work(for:)`, `Type.work()`, a C function, or the initializer of a global.
    func contain(function: String, file: String, line: Int) -> Bool {
        let parts = function.prefix { $0 != "(" }.split(separator: ".")
        return places.contains { place in
            place.name == parts.last && (parts.count == 1 || place.type == parts[parts.count - 2])
                && file.hasSuffix("/" + place.file) && place.lines.contains(line)
        }
    }

    /// Reads the functions of a file.
    ///
    /// A function begins with its name. It ends in the same line, or with a brace that has the same indentation.
    private mutating func read(_ text: String, of file: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        var type: Substring?
        for (index, line) in lines.enumerated() {
            if let found = line.firstMatch(of: /^(?:\w+ )*(?:class|struct|enum|extension|actor) (\w+)/) {
                type = found.1
            }
            let found =
                line.firstMatch(of: /^( *)(?:[@\w()]+ )*func (\w+)/).map { ($0.1, $0.2, "}") }
                ?? line.firstMatch(of: /^( *)static let (\w+): \w+ = {$/).map { ($0.1, $0.2, "}()") }
                ?? line.firstMatch(of: /^()\w[\w ]* \**(\w+)\(/).map { ($0.1, $0.2, "}") }
            guard let (indentation, name, brace) = found,
                let end = line.hasSuffix("}") ? index : lines[index...].firstIndex(of: indentation + brace)
            else { continue }
            places.append(
                Place(file: file, type: indentation.isEmpty ? nil : type, name: name, lines: index + 1...end + 1)
            )
        }
    }
}
