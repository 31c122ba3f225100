/// Stores a text in a C buffer, cut to its size and ended by a zero byte.
///
/// - Parameters:
///   - text: The text.
///   - buffer: The buffer.
///   - size: The size of the buffer in bytes.
func store(_ text: String, in buffer: UnsafeMutablePointer<CChar>, size: Int) {
    let bytes = text.utf8CString.dropLast().prefix(max(size - 1, 0))
    for (index, byte) in bytes.enumerated() { buffer[index] = byte }
    if size > 0 { buffer[bytes.count] = 0 }
}
