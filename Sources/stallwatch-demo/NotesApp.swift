import Foundation
import StallWatch

/// The app: each function freezes the main thread in a way of its own.
@MainActor
struct NotesApp {
    let monitor: StallMonitor
    let store = NoteStore()

    func showCount() {
        startThread("upload", store.upload)
        _ = store.count()
    }

    func retryLater() { Thread.sleep(forTimeInterval: 0.5) }

    /// Runs a program, for which `sleep` stands, and waits for its end.
    func checkSpelling() { _ = system("exec sleep 0.6") }

    func fetchTitle() {
        let reply = DispatchSemaphore(value: 0)
        Task.detached {
            try? await Task.sleep(for: .milliseconds(600))
            reply.signal()
        }
        reply.wait()
    }

    func layOutAmongRenderers() {
        for _ in 0..<8 * ProcessInfo.processInfo.activeProcessorCount {
            Thread.detachNewThread { layOut(for: .milliseconds(800)) }
        }
        layOut(for: .milliseconds(800))
    }

    /// Writes a file without a name in the current directory, again and again.
    func save() {
        var path = Array("notes-XXXXXX".utf8CString)
        let file = mkstemp(&path)
        unlink(path)
        let text = [UInt8](repeating: 7, count: 1 << 20)
        let end = ContinuousClock.now + .milliseconds(600)
        while ContinuousClock.now < end {
            pwrite(file, text, text.count, 0)
            fsync(file)
        }
        close(file)
    }

    func paste() {
        let pipe = Pipe()
        Thread.detachNewThread {
            Thread.sleep(forTimeInterval: 0.6)
            pipe.fileHandleForWriting.write(Data("Buy milk.".utf8))
        }
        _ = pipe.fileHandleForReading.availableData
    }

    /// Gives the main queue short work for two seconds, so that the main run loop never waits.
    func animate() {
        let end = ContinuousClock.now + .seconds(2)
        @Sendable func drawFrame() {
            layOut(for: .milliseconds(5))
            if ContinuousClock.now < end { DispatchQueue.main.async(execute: drawFrame) }
        }
        DispatchQueue.main.async(execute: drawFrame)
    }
}

private func layOut(for duration: Duration) {
    let end = ContinuousClock.now + duration
    var value: UInt64 = 1
    while ContinuousClock.now < end {
        for _ in 0..<10_000 { value = value &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407 }
    }
    errno = Int32(truncatingIfNeeded: value)
}
