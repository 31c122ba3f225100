import StallWatch

/// The scenario cannot run on this machine.
struct NotAvailable: Error {
    /// The missing thing, in half a sentence.
    let reason: String
}
