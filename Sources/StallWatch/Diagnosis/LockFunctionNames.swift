/// Names the innermost functions of a stack, as far as they are in the libraries that locks come from.
///
/// Used by the watchdog: the two libraries' symbol tables are read once, before anything stalls, and nothing else is.
final class LockFunctionNames {
    /// The libraries whose functions wait on behalf of an app.
    private static let libraries: Set<String> = ["libc.so.6", "libdispatch.so"]
    /// Frames that are looked at.
    ///
    /// From the system call outwards it is five to a mutex's function, with room for more.
    static let innermost = 8

    private var tables: [String: ELFSymbolTable?] = [:]

    /// Reads the tables of those libraries among `images` that are not read yet.
    ///
    /// Takes a few milliseconds once.
    func prepare(for images: ImageList) {
        for image in images.images where Self.libraries.contains(image.name) && tables[image.path] == nil {
            tables[image.path] = .some(try? ELFSymbolTable(path: image.path))
        }
    }

    /// The innermost frames' functions.
    func names(of frames: some Sequence<CapturedStack.Frame>, in images: ImageList) -> [NamedFrame] {
        frames.prefix(Self.innermost).map { frame in
            let address = frame.lookupAddress
            guard let image = images.image(at: address) else { return NamedFrame(function: nil, image: "") }
            let table = tables[image.path] ?? nil
            let symbol = table?.symbol(at: address &- image.base)?.name
            return NamedFrame(function: symbol.map { String($0.drop { $0 == "_" }) }, image: image.name)
        }
    }
}
