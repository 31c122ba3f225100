import Glibc

/// Waits, 20 seconds at most unless told otherwise, for what another thread does.
///
/// Returns whether it did.
package func eventually(within seconds: Int = 20, _ condition: () -> Bool) -> Bool {
    for _ in 0..<seconds * 200 {
        if condition() { return true }
        usleep(5_000)
    }
    return condition()
}
