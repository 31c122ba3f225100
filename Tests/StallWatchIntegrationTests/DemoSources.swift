import Foundation
import TestSupport

/// Where the demo's functions are, as its source files have it.
struct DemoSources {
    private struct Place {
        var file: String
        /// The type whose method it is.
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
            for name in try FileManager.default.contentsOfDirectory(atPath: directory.path)
            where name.hasSuffix(".swift") || name.hasSuffix(".c") {
                let file = directory.appendingPathComponent(name)
                read(try String(contentsOf: file, encoding: .utf8), of: "\(folder)/\(name)")
            }
        }
    }

    /// Whether the line is one of that function's: `work(for:)`, `Type.work()`, or a function in C.
    func contain(function: String, file: String, line: Int) -> Bool {
        let parts = function.prefix { $0 != "(" }.split(separator: ".")
        return places.contains { place in
            place.name == parts.last && (parts.count == 1 || place.type == parts[parts.count - 2])
                && file.hasSuffix("/" + place.file) && place.lines.contains(line)
        }
    }

    /// A function begins with its name and ends with a brace that is indented as its first line is.
    private mutating func read(_ text: String, of file: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        var type: Substring?
        for (index, line) in lines.enumerated() {
            if let found = line.firstMatch(of: /^(?:\w+ )*(?:class|struct|enum|extension|actor) (\w+)/) {
                type = found.1
            }
            let function = line.firstMatch(of: /^( *)(?:[@\w()]+ )*func (\w+)/)
            let found =
                function.map { ($0.1, $0.2) } ?? line.firstMatch(of: /^()\w[\w ]* \**(\w+)\(/).map { ($0.1, $0.2) }
            guard let (indentation, name) = found, let end = lines[index...].firstIndex(of: indentation + "}") else {
                continue
            }
            places.append(
                Place(file: file, type: indentation.isEmpty ? nil : type, name: name, lines: index + 1...end + 1)
            )
        }
    }
}
