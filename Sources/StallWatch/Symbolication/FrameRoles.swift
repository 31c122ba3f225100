/// Which images hold the app's own code.
///
/// In-app is the executable, and any image outside the directories where systems and toolchains put their own.
struct InAppRule {
    /// Directories whose images are never the app's.
    static let systemDirectories = ["/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib"]

    /// The directories of the Swift toolchain's own libraries, wherever it is installed.
    private let toolchainDirectories: [String]

    init(images: ImageList) {
        toolchainDirectories = images.images.filter { $0.name == "libswiftCore.so" }.map { directory(of: $0.path) }
    }

    func isInApp(_ image: LoadedImage) -> Bool {
        if image.isExecutable { return true }
        guard image.path.hasPrefix("/") else { return false }
        return !(Self.systemDirectories + toolchainDirectories).contains { image.path.hasPrefix($0 + "/") }
    }
}

/// The part of a path before its last slash.
private func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "" }
    return String(path[..<slash])
}

extension StallReport.Callout {
    /// What a turn was running, told from the functions through which a CFRunLoop calls out (CFRunLoop.c).
    ///
    /// - Parameter symbols: The stack's symbols, innermost first: the innermost callout is the one of the turn.
    init?(symbols: some Sequence<String?>) {
        for symbol in symbols {
            switch symbol {
            case "__CFRUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION__": self = .timer
            case "__CFRUNLOOP_IS_CALLING_OUT_TO_A_SOURCE0_PERFORM_FUNCTION__": self = .source0
            case "__CFRUNLOOP_IS_CALLING_OUT_TO_A_SOURCE1_PERFORM_FUNCTION__": self = .source1
            case "__CFRUNLOOP_IS_CALLING_OUT_TO_A_BLOCK__": self = .performedBlock
            case "__CFRUNLOOP_IS_CALLING_OUT_TO_AN_OBSERVER_CALLBACK_FUNCTION__": self = .observer
            case "__CFRUNLOOP_IS_SERVICING_THE_MAIN_DISPATCH_QUEUE__": self = .mainQueue
            default: continue
            }
            return
        }
        return nil
    }
}
