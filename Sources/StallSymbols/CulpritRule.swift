package import StallReports

extension StallReport {
    /// The function that a developer should look at first.
    ///
    /// The rule: on the stack that most samples show, going outwards from the innermost frame, the first frame that is the
    /// app's own, has a name, and is not plumbing. Inlined functions count as if they had been called, and callers that
    /// wait in an async function come after everything that runs on the thread on its behalf.
    ///
    /// So a thread that waits for a lock is blamed on the app's function that takes it, a slow `sort` on the function that
    /// sorts, and a stall inside a library's callback on the closure that the app gave it. A stack without the app's own
    /// code has no culprit.
    package static func culprit(of frames: [Frame], images: [Image]) -> Culprit? {
        guard let frame = frames.first(where: { $0.isInApp && $0.function != nil && $0.isRuntimeFrame != true }),
            let function = frame.function
        else { return nil }
        return Culprit(
            function: function, image: frame.image.map { images[$0].name }, file: frame.file, line: frame.line
        )
    }
}
