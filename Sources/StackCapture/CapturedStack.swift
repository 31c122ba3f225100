import LinuxSupport
package import StallReports

/// A thread's stack at one moment, as addresses that are not yet symbolicated.
package struct CapturedStack: Sendable, Equatable {
    package var method: StallReport.CaptureMethod
    package var threadState: StallReport.ThreadState
    /// The frames, innermost first.
    package var frames: [CapturedFrame]
    /// Whether the last frame is the thread's first function.
    package var isComplete: Bool
    /// Why frames are missing, or may be; `nil` if none is.
    package var incompleteReason: String?
    /// Whether the stack has all frames from the innermost to the thread's first function, and none is a guess.
    package var isWhole: Bool { isComplete && incompleteReason == nil }
    /// Whether it is of a thread that a monitor started, by its first function.
    package var isOfMonitor: Bool {
        frames.contains { !$0.isUncertain && WorkerThread.begins(at: $0.lookupAddress) }
    }
    /// The reason why callers of an async function on the stack are missing; `nil` if none are.
    package var missingAsyncCallersReason: String?
    /// The time for which the capture kept the thread from running, in nanoseconds.
    package var heldNanoseconds: UInt64
    /// The time that the watchdog spent on the whole capture, in nanoseconds.
    package var captureNanoseconds: UInt64
    /// The thread's last reading before the capture, if the thread did not run until the stack was copied.
    package var reading: ThreadReading?
    /// A time by which the stack had been copied, in monotonic nanoseconds; `nil` if it is not known.
    package var capturedAt: UInt64?
    /// The system call that the thread ran in; `nil` if it was in none or blocked in it.
    package var call: CapturedCall?
    /// What the thread was working on, copied in the same stop or wait as the stack; `nil` if nothing was found.
    package var context: CapturedContext?
    /// Why ``context`` is not known; `nil` if it is, or there is none.
    package var missingContextReason: String?

    package init(
        method: StallReport.CaptureMethod, threadState: StallReport.ThreadState, frames: [CapturedFrame],
        isComplete: Bool, incompleteReason: String? = nil, heldNanoseconds: UInt64, captureNanoseconds: UInt64
    ) {
        self.method = method
        self.threadState = threadState
        self.frames = frames
        self.isComplete = isComplete
        self.incompleteReason = incompleteReason
        self.heldNanoseconds = heldNanoseconds
        self.captureNanoseconds = captureNanoseconds
    }
}

package struct CapturedCall: Sendable, Equatable {
    /// The call's number; `nil` if the code does not show it.
    package var number: Int?
    /// All six argument registers, whether the call uses them or not.
    package var arguments: [UInt64]
    /// The file behind the first argument, read when the call had just returned; `nil` if there is none.
    package var target: String?
    /// Whether the call had returned before the capture: its arguments may lead to something else by now.
    package var hasReturned: Bool
}

package enum CapturedFrameKind: UInt64, Sendable {
    case code
    /// A suspended async function that awaits the function of the frame before it.
    case asyncCaller
    /// The last async caller of a task: the task ends when it returns.
    case taskStart
    /// The kernel's call of a signal handler: the frame before it is the handler's, the one after it was interrupted.
    case signal
}

package struct CapturedFrame: Sendable, Equatable {
    package var address: UInt64
    /// Whether `address` is the current instruction; if not, it is a return address: the one after the call.
    var isExact: Bool
    package var kind = CapturedFrameKind.code
    /// Whether it may not call the frame before it: it or one further in is a guess, or frames before it are left out.
    package var isUncertain = false

    package init(address: UInt64, isExact: Bool, kind: CapturedFrameKind = .code, isUncertain: Bool = false) {
        self.address = address
        self.isExact = isExact
        self.kind = kind
        self.isUncertain = isUncertain
    }

    /// An address inside the frame's current instruction or call, for looking up names and lines.
    package var lookupAddress: UInt64 { isExact || address == 0 ? address : address - 1 }
}

/// What a thread was working on when its stack was captured, as the bytes that were in its memory.
package struct CapturedContext: Sendable, Hashable {
    package struct TaskIdentity: Sendable, Hashable {
        /// The task's id, as in the description of its job.
        package var id: UInt64
        /// The task's name in UTF-8; `nil` if it has none.
        package var name: [UInt8]?
        package var isNameCut: Bool

        package init(id: UInt64, name: [UInt8]? = nil, isNameCut: Bool = false) {
            self.id = id
            self.name = name
            self.isNameCut = isNameCut
        }
    }

    /// The task; `nil` if none ran, or the runtime's layout is not known.
    package var task: TaskIdentity?
    /// The context that the app has published; empty if there is none.
    package var payload: [UInt8]
    /// OpenTelemetry's thread context record; empty if there is no valid one.
    package var record: [UInt8]

    package init(task: TaskIdentity? = nil, payload: [UInt8] = [], record: [UInt8] = []) {
        self.task = task
        self.payload = payload
        self.record = record
    }

    var isEmpty: Bool { task == nil && payload.isEmpty && record.isEmpty }
}

/// The images of a process at one moment, sorted by address.
package struct ImageList: Sendable, Equatable {
    package private(set) var images: [LoadedImage]

    package init(_ images: [LoadedImage] = []) {
        self.images = images.sorted { $0.addresses.lowerBound < $1.addresses.lowerBound }
    }

    package func image(at address: UInt64) -> LoadedImage? {
        var low = 0
        var high = images.count
        while low < high {
            let middle = (low + high) / 2
            if images[middle].addresses.lowerBound <= address { low = middle + 1 } else { high = middle }
        }
        guard low > 0, images[low - 1].addresses.contains(address) else { return nil }
        return images[low - 1]
    }
}

package struct LoadedImage: Sendable, Hashable {
    /// The file's path, never empty for the executable.
    package var path: String
    /// The address in this process of the file's virtual address 0.
    package var base: UInt64
    package var addresses: Range<UInt64>
    /// The bytes of the build ID; empty if the file has none.
    package var buildID: [UInt8]
    /// Tells an image without a build ID from another; `nil` if it has one.
    package var contentHash: UInt64?
    package var isExecutable: Bool

    package init(
        path: String, base: UInt64, addresses: Range<UInt64>, buildID: [UInt8], contentHash: UInt64? = nil,
        isExecutable: Bool
    ) {
        self.path = path
        self.base = base
        self.addresses = addresses
        self.buildID = buildID
        self.contentHash = contentHash
        self.isExecutable = isExecutable
    }

    package var name: String { fileName(path) }
}
