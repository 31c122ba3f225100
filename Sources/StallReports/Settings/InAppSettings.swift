/// Which code is the app's own.
///
/// The first frame of the app's own code is what a report blames: see ``StallReport/culprit``. By default that is the root
/// package's code: sources in a `checkouts` folder of the package manager are dependencies, and so is C code without debug
/// information in an executable that has some. Code of the system and of the Swift toolchain is never the app's. An
/// executable without debug information does not say where its code was compiled: there, name the app's modules.
public struct InAppSettings: Sendable, Equatable {
    /// Directories whose images are not the app's, besides `/lib`, `/usr/lib`, `/usr/local/lib` and the Swift
    /// toolchain's.
    public var excludedDirectories: [String]
    /// Swift modules that are not the app's, such as a package that is used by path.
    public var excludedModules: [String]
    /// Swift modules that are the app's wherever their sources lie, even if a module of the toolchain has the same name.
    ///
    /// Where there is no debug information, a Swift module that is not in this list is a dependency, unless the list is
    /// empty. A module in both lists is excluded.
    public var includedModules: [String]

    /// Makes a rule; all lists are empty by default.
    public init(
        excludedDirectories: [String] = [], excludedModules: [String] = [], includedModules: [String] = []
    ) {
        self.excludedDirectories = excludedDirectories
        self.excludedModules = excludedModules
        self.includedModules = includedModules
    }
}
