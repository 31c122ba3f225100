import Glibc

// A path is bytes, and need not be UTF-8. In the String of one that is not, or that has characters of the private use area
// from U+EF80 to U+EFFF, each byte over 0x7f is such a character, which is shown as U+FFFD. The functions below give the
// system the bytes back: they are chosen before those of Glibc, for which a String has to become a pointer.
private let escapes: ClosedRange<UInt32> = 0xef80...0xefff
/// The first byte of each such character in UTF-8.
private let firstByteOfEscape: UInt8 = 0xee

/// Returns bytes as text that ``pathBytes(_:)`` gives back.
package func pathText(_ bytes: some Sequence<UInt8>) -> String {
    let bytes = Array(bytes)
    if !bytes.contains(firstByteOfEscape), let text = String(validating: bytes, as: UTF8.self) { return text }
    // What is ASCII stays so.
    let scalars = bytes.compactMap { Unicode.Scalar($0 < 0x80 ? UInt32($0) : 0xef00 | UInt32($0)) }
    return String(String.UnicodeScalarView(scalars))
}

package func pathText(cString: UnsafePointer<CChar>) -> String {
    pathText(UnsafeRawBufferPointer(start: cString, count: strlen(cString)))
}

/// Returns the bytes of a path, with a zero at the end.
package func pathBytes(_ path: String) -> [CChar] {
    guard path.utf8.contains(firstByteOfEscape) else { return Array(path.utf8CString) }
    let bytes = path.unicodeScalars.flatMap { scalar in
        escapes.contains(scalar.value) ? [UInt8(truncatingIfNeeded: scalar.value)] : Array(String(scalar).utf8)
    }
    return bytes.map { CChar(bitPattern: $0) } + [0]
}

/// Returns the same bytes without the zero, as they stand in a socket's address or in an environment.
package func pathData(_ path: String) -> [UInt8] { pathBytes(path).dropLast().map { UInt8(bitPattern: $0) } }

/// Returns a variable of the environment that may be a path; `nil` if it is not set.
package func environmentPath(_ name: String) -> String? { getenv(name).map { pathText(cString: $0) } }

package func open(_ path: String, _ flags: Int32) -> Int32 { open(pathBytes(path), flags) }

package func open(_ path: String, _ flags: Int32, _ mode: UInt32) -> Int32 { open(pathBytes(path), flags, mode) }

package func access(_ path: String, _ mode: Int32) -> Int32 { access(pathBytes(path), mode) }
