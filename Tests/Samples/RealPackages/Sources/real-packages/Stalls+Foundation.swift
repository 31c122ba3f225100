import Dispatch
import Foundation

/// Its conformance to Codable is the compiler's.
private struct Order: Codable {
    struct Item: Codable {
        var name: String
        var count: Int
        var price: Double
    }
    var number: Int
    var customer: String
    var items: [Item]
}

private let orders = (0..<200).map { number in
    Order(
        number: number, customer: "customer \(number)",
        items: (0..<10).map { Order.Item(name: "item \($0)", count: $0, price: Double($0) * 1.5) }
    )
}
private let ordersData = (try? JSONEncoder().encode(orders)) ?? Data()
private let lines = (0..<500).map { "2026-01-\($0 % 28 + 1) user\($0)@example.com logged in from 10.0.0.\($0 % 256)" }

/// A file of 64 MB, most of it zeros.
private let bigFile: URL = {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("real-packages-\(getpid()).data")
    try? Data(count: 64 << 20).write(to: url)
    return url
}()

func prepareFoundation() { use((bigFile, ordersData.count, lines.count)) }
func removeFiles() { try? FileManager.default.removeItem(at: bigFile) }

@inline(never)
private func decodeOrders() throws {
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end { use(try JSONDecoder().decode([Order].self, from: ordersData)) }
    finish()
}

@inline(never)
private func encodeOrders() throws {
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end { use(try JSONEncoder().encode(orders)) }
    finish()
}

@inline(never)
private func matchLines() throws {
    let pattern = try Regex(#"([0-9]+)-([0-9]+)-([0-9]+) (\w+)@([\w.]+) .* ([0-9]+\.)+[0-9]+"#)
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end {
        for line in lines.prefix(20) { use(line.firstMatch(of: pattern)) }
    }
    finish()
}

@inline(never)
private func matchWithRegularExpression() throws {
    let pattern = try NSRegularExpression(pattern: #"(\w+)@([\w.]+) .* ([0-9]+\.)+[0-9]+"#)
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end {
        for line in lines.prefix(50) {
            use(pattern.numberOfMatches(in: line, range: NSRange(location: 0, length: line.utf16.count)))
        }
    }
    finish()
}

@inline(never)
private func sortNames() {
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end {
        use(lines.sorted { $0.reversed().lexicographicallyPrecedes($1.reversed()) })
    }
    finish()
}

@inline(never)
private func formatDates() {
    let formatter = DateFormatter()
    formatter.dateFormat = "EEEE d MMMM yyyy HH:mm:ss"
    formatter.locale = Locale(identifier: "de_DE")
    let end = DispatchTime.now() + stallLength
    var second = 0.0
    while DispatchTime.now() < end {
        use(formatter.string(from: Date(timeIntervalSince1970: second)))
        second += 86_461
    }
    finish()
}

@inline(never)
private func countFiles() {
    let end = DispatchTime.now() + stallLength
    var count = 0
    while DispatchTime.now() < end {
        let names = try? FileManager.default.contentsOfDirectory(atPath: "/usr/include/linux")
        for name in names ?? [] where FileManager.default.fileExists(atPath: "/usr/include/linux/" + name) {
            count += 1
        }
    }
    use(count)
    finish()
}

@inline(never)
private func loadBigFile() throws {
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end { use(try Data(contentsOf: bigFile).count) }
    finish()
}

@inline(never)
private func hashData() {
    let data = Data(repeating: 3, count: 50_000)
    let end = DispatchTime.now() + stallLength
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    while DispatchTime.now() < end {
        for byte in data { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    }
    use(hash)
    finish()
}

let foundationStalls = [
    LabeledStall("JSONDecoder, derived Decodable", culprit: "decodeOrders", .computing) { try decodeOrders() },
    LabeledStall("JSONEncoder, derived Encodable", culprit: "encodeOrders", .computing) { try encodeOrders() },
    LabeledStall("Regex", culprit: "matchLines", .computing) { try matchLines() },
    LabeledStall("NSRegularExpression", culprit: "matchWithRegularExpression", .computing) {
        try matchWithRegularExpression()
    },
    LabeledStall("sorted(by:) with a closure", culprit: "sortNames", .computing) { sortNames() },
    LabeledStall("DateFormatter", culprit: "formatDates", .computing) { formatDates() },
    LabeledStall("FileManager", culprit: "countFiles", .readingFiles) { countFiles() },
    LabeledStall("Data(contentsOf:)", culprit: "loadBigFile", .readingFiles) { try loadBigFile() },
    LabeledStall("a hash over Data", culprit: "hashData", .computing) { hashData() },
]
