import Algorithms
import BigInt
import Dispatch
import Foundation
import Mustache
import SwiftCSV
import Yams

private struct Book: Codable {
    var title: String
    var pages: Int
}

private struct Library: Codable {
    var name: String
    var books: [Book]
}

private let library = Library(name: "town", books: (0..<150).map { Book(title: "volume \($0)", pages: $0 * 7) })
private let libraryYAML = (try? YAMLEncoder().encode(library)) ?? ""
private let libraryCSV =
    "title,pages\n" + library.books.map { "\"\($0.title)\",\($0.pages)\n" }.joined()

@inline(never)
private func parseYAML() throws {
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end { use(try Yams.load(yaml: libraryYAML)) }
    finish()
}

@inline(never)
private func decodeYAML() throws {
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end { use(try YAMLDecoder().decode(Library.self, from: libraryYAML)) }
    finish()
}

@inline(never)
private func readCSV() throws {
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end { use(try NamedCSV(string: libraryCSV).rows.count) }
    finish()
}

@inline(never)
private func renderMustache() throws {
    let template = try MustacheTemplate(string: "{{#books}}{{title}}: {{pages}}\n{{/books}}")
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end { use(template.render(library)) }
    finish()
}

@inline(never)
private func computeFactorial() {
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end {
        var product = BigUInt(1)
        for factor in 1...400 { product *= BigUInt(factor) }
        use(product.description)
    }
    finish()
}

@inline(never)
private func listPermutations() {
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end {
        var count = 0
        for permutation in (0..<7).permutations() where permutation.first == 3 { count += permutation.count }
        use(count)
    }
    finish()
}

let formatStalls = [
    LabeledStall("Yams: load, in C", culprit: "parseYAML", .computing) { try parseYAML() },
    LabeledStall("Yams: decoder", culprit: "decodeYAML", .computing) { try decodeYAML() },
    LabeledStall("SwiftCSV", culprit: "readCSV", .computing) { try readCSV() },
    LabeledStall("swift-mustache", culprit: "renderMustache", .computing) { try renderMustache() },
    LabeledStall("BigInt", culprit: "computeFactorial", .computing) { computeFactorial() },
    LabeledStall("swift-algorithms", culprit: "listPermutations", .computing) { listPermutations() },
]
