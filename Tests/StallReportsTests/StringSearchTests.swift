import Testing

@testable import StallReports

struct StringSearchTests {
    @Test("finds a part anywhere", arguments: ["__derived_", "Kind.__derived_enum", "a_____derived_"])
    func found(text: String) {
        #expect(text.containsBytes(of: "__derived_"))
    }

    @Test("does not find what is missing or cut", arguments: ["", "derived", "__derived", "_derived_"])
    func missing(text: String) {
        #expect(!text.containsBytes(of: "__derived_"))
    }

    @Test("an empty part is in every text")
    func empty() {
        #expect("".containsBytes(of: ""))
        #expect("é".containsBytes(of: ""))
    }
}
