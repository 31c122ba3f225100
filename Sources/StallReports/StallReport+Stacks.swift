extension StallReport {
    /// One stack, taken while the stall lasted.
    public struct Sample: Codable, Sendable, Equatable {
        /// How old the turn was.
        public var atMilliseconds: Double
        /// Index into ``StallReport/stacks``; `nil` when no stack could be taken.
        public var stack: Int?
        /// Why there is no stack, or why it is not complete; `nil` when it is.
        public var reason: String?
        /// What the thread was doing.
        public var threadState: ThreadState?
        /// How the stack was taken.
        public var method: CaptureMethod?
        /// The workers of a pool, grouped by equal stack: those in the app's code first, then the largest group.
        public var workers: [WorkerGroup]?
        /// Whether the same turn was still running after the capture: only then is the stack the stall's for certain.
        public var isValid: Bool
        /// Whether the stack reaches to the thread's first function.
        public var isComplete: Bool
        /// How long the thread was kept from running, in microseconds.
        public var heldMicroseconds: Double
        /// How long the capture took on the watchdog's time, in microseconds.
        public var captureMicroseconds: Double

        package init(
            atMilliseconds: Double,
            stack: Int? = nil,
            reason: String? = nil,
            threadState: ThreadState? = nil,
            method: CaptureMethod? = nil,
            workers: [WorkerGroup]? = nil,
            isValid: Bool,
            isComplete: Bool,
            heldMicroseconds: Double,
            captureMicroseconds: Double
        ) {
            self.atMilliseconds = atMilliseconds
            self.stack = stack
            self.reason = reason
            self.threadState = threadState
            self.method = method
            self.workers = workers
            self.isValid = isValid
            self.isComplete = isComplete
            self.heldMicroseconds = heldMicroseconds
            self.captureMicroseconds = captureMicroseconds
        }
    }

    /// Workers of a pool that have the same stack.
    public struct WorkerGroup: Codable, Sendable, Equatable {
        /// Index into ``StallReport/stacks``; `nil` for workers whose stacks could not be taken.
        public var stack: Int?
        /// The threads.
        public var threads: [ThreadDescription]

        package init(
            stack: Int? = nil,
            threads: [ThreadDescription]
        ) {
            self.stack = stack
            self.threads = threads
        }
    }

    /// A thread that is not the loop's, captured once, right after the first sample.
    public struct OtherThread: Codable, Sendable, Equatable {
        /// The thread.
        public var thread: ThreadDescription
        /// Index into ``StallReport/stacks``; `nil` when no stack could be taken.
        public var stack: Int?
        /// Why there is no stack, or why it is not complete; `nil` when it is.
        public var reason: String?
        /// What the thread was doing.
        public var threadState: ThreadState?
        /// How the stack was taken.
        public var method: CaptureMethod?
        /// How long the thread was kept from running, in microseconds.
        public var heldMicroseconds: Double

        package init(
            thread: ThreadDescription,
            stack: Int? = nil,
            reason: String? = nil,
            threadState: ThreadState? = nil,
            method: CaptureMethod? = nil,
            heldMicroseconds: Double
        ) {
            self.thread = thread
            self.stack = stack
            self.reason = reason
            self.threadState = threadState
            self.method = method
            self.heldMicroseconds = heldMicroseconds
        }
    }

    /// One frame of a stack.
    ///
    /// (build ID of the image, offset) names the place for ever, whatever addresses the process had.
    public struct Frame: Codable, Sendable, Hashable {
        /// Index into ``StallReport/images``; `nil` when the address is in none.
        public var image: Int?
        /// The address as a virtual address of the image's file; without an image, the address itself.
        ///
        /// Hexadecimal.
        public var offset: String
        /// The function's name as it was written.
        public var function: String?
        /// The mangled name.
        public var symbol: String?
        /// The source file as the compiler recorded it.
        public var file: String?
        /// The line in it, from 1.
        ///
        /// Where the compiler made code that stands for no line: the one before it in the same function, else the one that
        /// declares the function.
        public var line: Int?
        /// The column in the line, from 1.
        public var column: Int?
        /// True for a function that was inlined into the next frame's, which has the same image and offset.
        public var isInlined: Bool?
        /// Whether the code is the app's own: the root package's.
        public var isInApp: Bool
        /// True for code of a package that the app depends on, or of a library that was compiled elsewhere and linked in.
        public var isDependency: Bool?
        /// True for a frame that only passes a call on (a thunk, the run loop's own): readers may fold it.
        public var isRuntimeFrame: Bool?
        /// What the compiler made the function for; `nil` for a function that was written.
        ///
        /// Such a function is never blamed.
        public var compilerGenerated: CompilerGenerated?
        /// Why the name or line is missing, where the reason is not the image's.
        public var reason: String?
        /// What the frame is.
        public var kind: FrameKind
        /// True for the last async caller of a task: frames after it do not wait for this task.
        public var isTaskStart: Bool?

        package init(
            image: Int? = nil,
            offset: String,
            function: String? = nil,
            symbol: String? = nil,
            file: String? = nil,
            line: Int? = nil,
            column: Int? = nil,
            isInlined: Bool? = nil,
            isInApp: Bool,
            isDependency: Bool? = nil,
            isRuntimeFrame: Bool? = nil,
            compilerGenerated: CompilerGenerated? = nil,
            reason: String? = nil,
            kind: FrameKind,
            isTaskStart: Bool? = nil
        ) {
            self.image = image
            self.offset = offset
            self.function = function
            self.symbol = symbol
            self.file = file
            self.line = line
            self.column = column
            self.isInlined = isInlined
            self.isInApp = isInApp
            self.isDependency = isDependency
            self.isRuntimeFrame = isRuntimeFrame
            self.compilerGenerated = compilerGenerated
            self.reason = reason
            self.kind = kind
            self.isTaskStart = isTaskStart
        }
    }

    /// An ELF file that was mapped into the process.
    public struct Image: Codable, Sendable, Hashable {
        /// The file's name without its directories.
        public var name: String
        /// The file's path.
        public var path: String
        /// The build ID in hexadecimal; `nil` if the file has none.
        public var buildID: String?
        /// The address that the file's virtual address 0 had.
        ///
        /// Hexadecimal.
        public var baseAddress: String
        /// Whether it is the app's: the executable, or a library outside the system's and the toolchain's directories.
        public var isInApp: Bool?
        /// Why names or lines of this image are missing; `nil` when none are.
        public var reason: String?

        package init(
            name: String,
            path: String,
            buildID: String? = nil,
            baseAddress: String,
            isInApp: Bool? = nil,
            reason: String? = nil
        ) {
            self.name = name
            self.path = path
            self.buildID = buildID
            self.baseAddress = baseAddress
            self.isInApp = isInApp
            self.reason = reason
        }
    }

    /// The names of a sample's functions, innermost first, with the image and offset where there is no name.
    public func functionNames(of sample: Sample) -> [String] {
        guard let stack = sample.stack, stacks.indices.contains(stack) else { return [] }
        return stacks[stack].map { index in
            guard frames.indices.contains(index) else { return "?" }
            let frame = frames[index]
            if let function = frame.function { return function }
            guard let image = frame.image, images.indices.contains(image) else { return frame.offset }
            return "\(images[image].name)+\(frame.offset)"
        }
    }
}
