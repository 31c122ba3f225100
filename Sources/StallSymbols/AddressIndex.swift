/// Finds the last of many addresses that is not past a given one.
///
/// A symbol table is used for a handful of look-ups, and sorting its hundred thousand addresses would cost more than all of
/// them. So the addresses are only dealt into buckets of equal width, about eight to each, in two passes.
struct AddressIndex {
    /// An address, and the number of what is there.
    struct Entry {
        var address: UInt64
        var number: UInt32
    }

    private let entries: [Entry]
    /// Index into `entries` of each bucket's first, and one past the last bucket's end.
    private let starts: [UInt32]
    private let lowest: UInt64
    private let width: UInt64

    /// - Parameter addresses: In any order; fewer than 2³².
    init(addresses: [Entry]) {
        var lowest = UInt64.max
        var highest = UInt64.min
        for entry in addresses {
            lowest = min(lowest, entry.address)
            highest = max(highest, entry.address)
        }
        guard lowest <= highest else {
            (entries, starts, self.lowest, width) = ([], [0], 0, 1)
            return
        }
        let buckets = addresses.count / 8 + 1
        let width = max((highest - lowest) / UInt64(buckets), 1)
        func bucket(of entry: Entry) -> Int { Int(min((entry.address - lowest) / width, UInt64(buckets - 1))) }
        var starts = [UInt32](repeating: 0, count: buckets + 1)
        for entry in addresses { starts[bucket(of: entry) + 1] += 1 }
        for index in 0..<buckets { starts[index + 1] += starts[index] }
        var next = starts
        entries = [Entry](unsafeUninitializedCapacity: addresses.count) { buffer, initialized in
            for entry in addresses {
                let bucket = bucket(of: entry)
                // Each bucket has room for exactly the entries that were counted into it, so all are initialized.
                buffer.initializeElement(at: Int(next[bucket]), to: entry)
                next[bucket] += 1
            }
            initialized = addresses.count
        }
        self.starts = starts
        self.lowest = lowest
        self.width = width
    }

    /// Bytes that the index holds.
    var memoryBytes: Int {
        entries.count * MemoryLayout<Entry>.stride + starts.count * MemoryLayout<UInt32>.stride
    }

    /// The numbers of the entries at the highest address that is not past `address`.
    func lastBegun(before address: UInt64) -> [UInt32] {
        guard address >= lowest, !entries.isEmpty else { return [] }
        let wanted = (address - lowest) / width
        for bucket in stride(from: Int(min(wanted, UInt64(starts.count - 2))), through: 0, by: -1) {
            var best: UInt64?
            var numbers: [UInt32] = []
            for entry in entries[Int(starts[bucket])..<Int(starts[bucket + 1])] where entry.address <= address {
                if let best, entry.address < best { continue }
                if entry.address != best { numbers.removeAll() }
                best = entry.address
                numbers.append(entry.number)
            }
            if !numbers.isEmpty { return numbers }
        }
        return []
    }
}
