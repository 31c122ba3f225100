import Glibc

/// Waits for another thread to make a condition true, checking every 5 ms.
///
/// - Parameters:
///   - seconds: The longest time to wait.
///   - condition: The condition.
/// - Returns: Whether the condition became true.
package func eventually(within seconds: Int = 20, _ condition: () -> Bool) -> Bool {
    for _ in 0..<seconds * 200 {
        if condition() { return true }
        usleep(5_000)
    }
    return condition()
}
