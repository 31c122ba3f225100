/// "1 report", "2 reports".
func counted(_ count: Int, _ one: String, _ many: String) -> String { "\(count) \(count == 1 ? one : many)" }

/// The part of a path after its last slash.
func fileName(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }

/// A file's name with a line, such as `NoteStore.swift:88`.
func sourcePlace(_ file: String, _ line: Int?) -> String { fileName(file) + (line.map { ":\($0)" } ?? "") }
