import Glibc
import TestSupport
import Testing

@testable import StallWatch
@testable import StackCapture
@testable import StallSymbols

/// A function that is not exported and not wrapped by another one.
@inline(never) private func functionThatIsNotExported(_ value: Int32) -> Int32 {
    value &+ 1
}

@Suite struct SymbolTableSymbolicatorTests {
    private let symbolicator = Symbolicator(.names)

    private func symbol(at offset: UInt64, in image: LoadedImage) -> String? {
        symbolicator.symbol(
            at: offset,
            in: ImageIdentity(path: image.path, buildID: image.buildIDText, isOwnExecutable: image.isExecutable)
        )
    }

    /// Returns the image that contains `pointer`, and the pointer's virtual address in the image's file.
    private func place(of pointer: UnsafeRawPointer) throws -> (image: LoadedImage, offset: UInt64) {
        let address = UInt64(UInt(bitPattern: pointer))
        let image = try #require(try CUnwindEngine().images().image(at: address))
        return (image, address - image.base)
    }

    /// The executable's symbol table names a private function; dladdr(3) does not.
    @Test func aPrivateFunctionOfThisExecutableIsNamed() throws {
        let function: @convention(c) (Int32) -> Int32 = functionThatIsNotExported
        let (image, offset) = try place(of: unsafeBitCast(function, to: UnsafeRawPointer.self))
        #expect(image.isExecutable)
        let found = try #require(symbol(at: offset, in: image))
        #expect(found.contains("functionThatIsNotExported"))
        #expect(Demangler.functionName(found).contains("functionThatIsNotExported"))
    }

    @Test func aFunctionOfALibraryIsNamed() throws {
        let (image, offset) = try place(of: try #require(dlsym(nil, "CFRunLoopGetMain")))
        #expect(!image.isExecutable)
        #expect(symbol(at: offset, in: image) == "CFRunLoopGetMain")
        #expect(symbol(at: .max, in: image) == nil)
    }

    @Test func anImageWithoutAFileHasNoNames() {
        let image = LoadedImage.stub(path: "linux-vdso.so.1", addresses: 0..<1)
        #expect(symbol(at: 0x100, in: image) == nil)
        #expect(symbol(at: 0x100, in: image) == nil)
    }

    @Test func evictedImagesAreReadAgain() throws {
        let directory = try TemporaryDirectory()
        let images = try (0..<Symbolicator.maximumOpenImages + 10).map { index in
            let elf = SmallELF(symbols: [.init(name: "function\(index)", address: 0x1000)])
            return LoadedImage.stub(path: try directory.write("\(index).so", elf.bytes), addresses: 0..<1)
        }
        for _ in 0..<2 {
            for (index, image) in images.enumerated() {
                #expect(symbol(at: 0x1000, in: image) == "function\(index)")
            }
        }
    }
}
