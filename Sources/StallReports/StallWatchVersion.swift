/// The version of the library and the tool, contained in every report.
package enum StallWatchVersion {
    /// The current version, in the form of Semantic Versioning.
    package static let current = "0.1.0"
}
