/// The reader has closed standard output, as in `stallwatch top | head`.
///
/// This ends the command without an error.
struct ReaderGone: Error {}
