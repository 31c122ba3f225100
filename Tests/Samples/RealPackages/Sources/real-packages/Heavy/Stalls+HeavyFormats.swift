import Dispatch
import Foundation
import OpenCombine
import Stencil
import TOMLKit
import XMLCoder

private struct Book: Codable {
    var title: String
    var pages: Int
}

private struct Library: Codable {
    var name: String
    var books: [Book]
}

private let library = Library(name: "town", books: (0..<150).map { Book(title: "volume \($0)", pages: $0 * 7) })
private let libraryTOML = (try? TOMLEncoder().encode(library) as String) ?? ""
private let libraryXML = (try? XMLEncoder().encode(library, withRootKey: "library")) ?? Data()

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

let heavyFormatStalls = [
    LabeledStall("TOMLKit: parser in C++", culprit: "parseTOML", .computing) { try parseTOML() },
    LabeledStall("XMLCoder", culprit: "decodeXML", .computing) { try decodeXML() },
    LabeledStall("Stencil", culprit: "renderStencil", .computing) { try renderStencil() },
    LabeledStall("OpenCombine: closure of a sink", culprit: "publishNumbers", .sleeping) { publishNumbers() },
]
