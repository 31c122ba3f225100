import Foundation

/// Runs the program at `path` and returns its standard output.
///
/// `showsErrors` passes its standard error through. Throws if its exit status is not 0.
package func output(of path: String, _ arguments: [String] = [], showsErrors: Bool = true) throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    if !showsErrors { process.standardError = FileHandle.nullDevice }
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
        throw CannotMeasure("\(([path] + arguments).joined(separator: " ")) ended with \(process.terminationStatus)")
    }
    return text
}

/// Returns the path of another program of this package, in the directory of this one.
package func sibling(_ name: String) throws -> String {
    let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let path = URL(fileURLWithPath: own).deletingLastPathComponent().appendingPathComponent(name).path
    guard FileManager.default.isExecutableFile(atPath: path) else {
        throw CannotMeasure("there is no \(name) beside this program: build it, too")
    }
    return path
}
