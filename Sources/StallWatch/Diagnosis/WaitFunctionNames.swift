import StackCapture
import StallSymbols

/// Names the innermost functions of a stack, as far as they tell what a thread waits for.
///
/// Used by the watchdog: where those few functions are is read once, before anything stalls, and nothing else is.
final class WaitFunctionNames {
    /// The libraries whose functions wait on behalf of an app.
    static let libraries: Set<String> = ["libc.so.6", "libdispatch.so"]
    /// Frames that are looked at.
    ///
    /// From the system call outwards it is five to a mutex's function, with room for more.
    static let innermost = 8

    /// By the path of the library, with the names that an app calls them by.
    private var functions: [String: [ELFFile.Function]] = [:]

    /// Looks for the functions in those libraries among `images` that were not looked into yet.
    ///
    /// Takes a few milliseconds once.
    func prepare(for images: ImageList) {
        for image in images.images where Self.libraries.contains(image.name) && functions[image.path] == nil {
            let found = try? ELFFile(path: image.path).functions { Self.tells(Self.name($0)) }
            functions[image.path] = (found ?? []).map {
                ELFFile.Function(name: Self.name($0.name), addresses: $0.addresses)
            }
        }
    }

    /// The innermost frames with their images, and with the names of those functions.
    func names(of frames: some Sequence<CapturedStack.Frame>, in images: ImageList) -> [NamedFrame] {
        frames.prefix(Self.innermost).map { frame in
            let address = frame.lookupAddress
            guard let image = images.image(at: address) else { return NamedFrame(function: nil, image: "") }
            let function = functions[image.path]?.first { $0.addresses.contains(address &- image.base) }
            return NamedFrame(function: function?.name, image: image.name)
        }
    }

    /// Whether the rules know the function.
    private static func tells(_ function: String) -> Bool {
        LockFunction.isKnown(function) || SystemCall.Purpose(ofFunction: function) != nil
            || SystemCall.isRestarted(by: function)
    }

    /// As an app calls it: libc itself calls the same function by a name that begins with underscores.
    private static func name(_ symbol: String) -> String { String(symbol.drop { $0 == "_" }) }
}
