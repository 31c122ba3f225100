import CxxWords
import Dispatch
import Foundation
import Observation

// Code around which the compiler writes more: C++ classes, macros, autoclosures, conformances inlined from other files.

private let sources = String(#filePath.dropLast("real-packages/Stalls+Generated.swift".utf8.count))
private let words = sources + "CxxWords/words.cpp"

@Observable
private final class Library {
    var titles: [String] = []
}

@inline(never)
private func changeObservedTitles() {
    let library = Library()
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end {
        for number in 0..<100 { library.titles.append("title \(number)") }
        library.titles.removeAll()
    }
    finish()
}

/// Evaluates a message, as functions that log do.
private func note(_ message: @autoclosure () -> String) {
    use(message())
    finish()
}

@inline(never)
private func noteSlowly() {
    note("\(usleep(stallMicroseconds))")
    finish()
}

private struct SlowKey: Hashable {
    var number: Int

    func hash(into hasher: inout Hasher) {
        usleep(stallMicroseconds / 16)
        hasher.combine(number)
        finish()
    }
}

let generatedStalls = [
    LabeledStall("C++: std::sort", culprit: "cxx_sort_words", .computing, file: words) {
        use(cxx_sort_words(Int32(stallMicroseconds / 1_000)))
    },
    LabeledStall(
        "C++: condition_variable", culprit: "cxx_wait_for_condition", .waitingForLock, lock: "condition", file: words
    ) {
        use(cxx_wait_for_condition(Int32(stallMicroseconds / 1_000)))
    },
    LabeledStall("property of an @Observable class", culprit: "changeObservedTitles", .computing) {
        changeObservedTitles()
    },
    LabeledStall("autoclosure", culprit: "noteSlowly", .sleeping) { noteSlowly() },
    LabeledStall("keys of a Set", culprit: "hash", .sleeping) { use(Set((0..<16).map { SlowKey(number: $0) }).count) },
]
