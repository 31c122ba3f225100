import Glibc

extension StallRecord {
    /// Threads that are captured beside the loop's at most.
    static let maximumOtherThreads = 256

    /// Captures every thread of the process but `excluded`, one after another.
    mutating func captureOtherThreads(than excluded: Set<Int32>, with capturer: any StackCapturing) {
        let others = ThreadList.current().filter { !excluded.contains($0) }
        for thread in others.prefix(Self.maximumOtherThreads) {
            let stack: Result<CapturedStack, CaptureError>
            do {
                stack = .success(try capturer.capture(thread: thread))
            } catch {
                stack = .failure(error)
            }
            otherThreads.append(OtherThread(thread: .init(thread), stack: stack))
        }
        omittedThreads = max(others.count - Self.maximumOtherThreads, 0)
        otherImages = capturer.images()
    }
}

extension StallReport.ThreadDescription {
    /// A thread of this process, with the name that it has now.
    init(_ thread: Int32) {
        self.init(id: thread, name: readSmallFile("/proc/self/task/\(thread)/comm").map(firstLine))
    }
}

/// The threads of this process.
enum ThreadList {
    /// The kernel ids of all threads, ascending.
    static func current() -> [Int32] {
        guard let directory = opendir("/proc/self/task") else { return [] }
        defer { closedir(directory) }
        var threads: [Int32] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if let thread = Int32(name) { threads.append(thread) }
        }
        return threads.sorted()
    }
}
