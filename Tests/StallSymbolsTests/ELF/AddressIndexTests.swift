import TestSupport
import Testing

@testable import StallSymbols

@Suite("Address index")
struct AddressIndexTests {
    @Test("finds what a sorted search finds, for any distribution of addresses")
    func agreesWithSortedSearch() {
        var generator = SeededGenerator(seed: 7)
        for count in [1, 2, 7, 8, 9, 100, 3000] {
            for spread in [1, 10, 100_000, UInt64.max] {
                let entries = (0..<count).map {
                    AddressIndex.Entry(address: generator.next() % spread &+ 5, number: UInt32($0))
                }
                let index = AddressIndex(addresses: entries)
                for _ in 0..<50 {
                    let wanted = generator.next() % spread &+ generator.next() % 12
                    let last = entries.filter { $0.address <= wanted }.map(\.address).max()
                    let expected = last.map { last in entries.filter { $0.address == last }.map(\.number) } ?? []
                    #expect(index.lastBegun(before: wanted).sorted() == expected.sorted())
                    let next = entries.filter { $0.address > wanted }.map(\.address).min()
                    #expect(index.firstBegun(after: wanted).map { entries[Int($0)].address } == next)
                }
            }
        }
    }

    @Test("an empty index finds nothing")
    func empty() {
        #expect(AddressIndex(addresses: []).lastBegun(before: .max).isEmpty)
        #expect(AddressIndex(addresses: []).firstBegun(after: 0) == nil)
    }

    @Test("takes the whole address space")
    func extremes() {
        let index = AddressIndex(addresses: [.init(address: .max, number: 1), .init(address: 0, number: 2)])
        #expect(index.lastBegun(before: .max) == [1])
        #expect(index.lastBegun(before: .max - 1) == [2])
        #expect(index.lastBegun(before: 0) == [2])
    }
}
