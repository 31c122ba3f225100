import TestSupport
import Testing

@testable import StackCapture

@Suite struct ImageListTests {
    private let low = LoadedImage.stub(path: "/opt/notes/bin/notes", addresses: 0x1000..<0x2000)
    private let middle = LoadedImage.stub(path: "/lib/libc.so.6", addresses: 0x2000..<0x2800)
    private let high = LoadedImage.stub(path: "linux-vdso.so.1", addresses: 0xf000..<0xf001)

    @Test func theImageThatContainsAnAddressIsFound() {
        let list = ImageList([high, low, middle])
        #expect(list.images == [low, middle, high])
        #expect(list.image(at: 0xfff) == nil)
        #expect(list.image(at: 0x1000) == low)
        #expect(list.image(at: 0x1fff) == low)
        #expect(list.image(at: 0x2000) == middle)
        #expect(list.image(at: 0x27ff) == middle)
        #expect(list.image(at: 0x2800) == nil, "a gap")
        #expect(list.image(at: 0xf000) == high)
        #expect(list.image(at: 0xf001) == nil)
        #expect(list.image(at: 0) == nil)
        #expect(list.image(at: .max) == nil)
    }

    @Test func addressesAreFoundInManyImages() {
        let images = (0..<200).map { index in
            LoadedImage.stub(path: "/lib/\(index).so", addresses: UInt64(index) * 0x100..<UInt64(index) * 0x100 + 0x80)
        }
        let list = ImageList(images.reversed())
        for (index, image) in images.enumerated() {
            #expect(list.image(at: UInt64(index) * 0x100) == image)
            #expect(list.image(at: UInt64(index) * 0x100 + 0x7f) == image)
            #expect(list.image(at: UInt64(index) * 0x100 + 0x80) == nil)
        }
    }

    @Test func anEmptyListContainsNoAddress() {
        #expect(ImageList().image(at: 0x1000) == nil)
    }

    @Test func anEmptyImageContainsNoAddress() {
        #expect(ImageList([.stub(path: "/lib/empty.so", addresses: 0x10..<0x10)]).image(at: 0x10) == nil)
    }

    @Test func theNameIsThePathsLastPart() {
        #expect(low.name == "notes")
        #expect(high.name == "linux-vdso.so.1")
        #expect(LoadedImage.stub(path: "", addresses: 0..<1).name == "")
    }
}
