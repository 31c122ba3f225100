import Glibc

// A path is bytes, and need not be UTF-8. In a String, each byte that is not is a character of a private use area, from
// U+EF80 to U+EFFF, which is shown as U+FFFD; so are the bytes of such characters themselves. The functions below give
// the system the bytes back: they are chosen before those of Glibc, for which a String has to become a pointer.
private let escapes: ClosedRange<UInt32> = 0xef80...0xefff
/// The first byte of each such character in UTF-8.
private let firstByteOfEscape: UInt8 = 0xee

/// Returns bytes as text that ``pathBytes(_:)`` gives back.
package func pathText(_ bytes: some Sequence<UInt8>) -> String {
    let bytes = Array(bytes)
    if !bytes.contains(firstByteOfEscape), let text = String(validating: bytes, as: UTF8.self) { return text }
    var text = String.UnicodeScalarView()
    var at = 0
    while at < bytes.count {
        // The shortest valid text is one character.
        let valid = (1...4).lazy.compactMap { String(validating: bytes[at...].prefix($0), as: UTF8.self) }.first
        if let scalar = valid?.unicodeScalars.first, !escapes.contains(scalar.value) {
            text.append(scalar)
            at += UTF8.width(scalar)
        } else {
            if let escape = Unicode.Scalar(0xef00 | UInt32(bytes[at])) { text.append(escape) }
            at += 1
        }
    }
    return String(text)
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

package func open(_ path: String, _ flags: Int32) -> Int32 { open(pathBytes(path), flags) }

package func open(_ path: String, _ flags: Int32, _ mode: UInt32) -> Int32 { open(pathBytes(path), flags, mode) }

package func openat(_ directory: Int32, _ path: String, _ flags: Int32) -> Int32 {
    openat(directory, pathBytes(path), flags)
}

package func openat(_ directory: Int32, _ path: String, _ flags: Int32, _ mode: UInt32) -> Int32 {
    openat(directory, pathBytes(path), flags, mode)
}

@discardableResult
package func unlinkat(_ directory: Int32, _ path: String, _ flags: Int32) -> Int32 {
    unlinkat(directory, pathBytes(path), flags)
}

package func renameat(_ directory: Int32, _ path: String, _ otherDirectory: Int32, _ other: String) -> Int32 {
    renameat(directory, pathBytes(path), otherDirectory, pathBytes(other))
}

package func access(_ path: String, _ mode: Int32) -> Int32 { access(pathBytes(path), mode) }
