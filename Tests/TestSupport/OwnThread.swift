import LinuxSupport

/// Returns the calling thread's kernel id, from a link such as "4700/task/4711" (proc(5)).
package func ownThread() -> Int32? {
    readLink("/proc/thread-self")?.split(separator: "/").last.flatMap { Int32($0) }
}
