import Algorithms
import BigInt
import Dispatch
import Foundation
import Mustache
import OpenCombine
import Stencil
import SwiftCSV
import TOMLKit
import XMLCoder
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
private let libraryTOML = (try? TOMLEncoder().encode(library) as String) ?? ""
private let libraryXML = (try? XMLEncoder().encode(library, withRootKey: "library")) ?? Data()
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
private func parseTOML() throws {
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end { use(try TOMLTable(string: libraryTOML)) }
    finish()
}

@inline(never)
private func decodeXML() throws {
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end { use(try XMLDecoder().decode(Library.self, from: libraryXML)) }
    finish()
}

@inline(never)
private func readCSV() throws {
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end { use(try NamedCSV(string: libraryCSV).rows.count) }
    finish()
}

@inline(never)
private func renderStencil() throws {
    let template = Template(
        templateString: "{% for book in books %}{{ book.title|uppercase }}: {{ book.pages }}\n{% endfor %}")
    let context: [String: Any] = [
        "books": library.books.map { ["title": $0.title, "pages": $0.pages] as [String: Any] }
    ]
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end { use(try template.render(context)) }
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

/// The closure runs inside of the publisher, which is a dependency.
@inline(never)
private func publishNumbers() {
    let subject = PassthroughSubject<Int, Never>()
    let subscription = subject.map { $0 * 2 }.filter { $0 > 0 }.sink { number in
        usleep(stallMicroseconds)
        use(number)
        finish()
    }
    subject.send(21)
    subscription.cancel()
    finish()
}

let formatStalls = [
    LabeledStall("Yams: load, in C", culprit: "parseYAML", .computing) { try parseYAML() },
    LabeledStall("Yams: decoder", culprit: "decodeYAML", .computing) { try decodeYAML() },
    LabeledStall("TOMLKit: parser in C++", culprit: "parseTOML", .computing) { try parseTOML() },
    LabeledStall("XMLCoder", culprit: "decodeXML", .computing) { try decodeXML() },
    LabeledStall("SwiftCSV", culprit: "readCSV", .computing) { try readCSV() },
    LabeledStall("Stencil", culprit: "renderStencil", .computing) { try renderStencil() },
    LabeledStall("swift-mustache", culprit: "renderMustache", .computing) { try renderMustache() },
    LabeledStall("BigInt", culprit: "computeFactorial", .computing) { computeFactorial() },
    LabeledStall("swift-algorithms", culprit: "listPermutations", .computing) { listPermutations() },
    LabeledStall("OpenCombine: closure of a sink", culprit: "publishNumbers", .sleeping) { publishNumbers() },
]
