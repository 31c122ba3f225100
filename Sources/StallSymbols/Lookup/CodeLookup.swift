/// What is known of one address.
package struct CodeLookup: Sendable, Equatable {
    /// Innermost first.
    ///
    /// Functions inlined there come before the one that the address is in. Never empty.
    var locations: [CodeLocation]
    /// Why not all is known, in words, where the reason is not the whole image's.
    var reason: String?
    /// Whether the code was compiled elsewhere: the image's debug information does not cover the address, or without that
    /// the symbols around it are a library's.
    var isOutsideDebugInformation = false
    /// Whether it was not done for want of time, so that asking again with more time may tell more.
    var isUnfinished = false

    /// Nothing is known.
    static let nothing = CodeLookup(locations: [CodeLocation()])
}
