/// The version of the library and the tool, which every report carries.
package enum StallWatchVersion {
    /// Three numbers, by the rules of Semantic Versioning.
    package static let current = "0.1.0"
}
