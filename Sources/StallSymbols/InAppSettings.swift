/// What is not the app's own code, besides what systems and toolchains bring along.
///
/// The first frame of the app's own code is what a report blames: see ``StallReport/culprit``.
public struct InAppSettings: Sendable, Equatable {
    /// Directories whose images are not the app's, besides `/lib`, `/usr/lib`, `/usr/local/lib` and the Swift
    /// toolchain's.
    public var excludedDirectories: [String]
    /// Swift modules that are not the app's, such as `NIOCore`, besides those of the toolchain.
    public var excludedModules: [String]

    /// Makes a rule; both lists are empty by default.
    public init(excludedDirectories: [String] = [], excludedModules: [String] = []) {
        self.excludedDirectories = excludedDirectories
        self.excludedModules = excludedModules
    }
}
