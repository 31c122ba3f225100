import CStallWatch
import StallWatch
import Testing

/// Contexts where there are no reports.
@Suite struct ContextTests {
    @Test func `a context is the current one, and nothing else`() async {
        #expect(StallContext.current == nil)
        let inherited = withStallContext("import", ["a": "1"]) {
            #expect(StallContext.current?.label == "import" && StallContext.current?.attributes == ["a": "1"])
            return Task { StallContext.current?.label }
        }
        #expect(await inherited.value == "import")
        #expect(StallContext.current == nil)
        stallwatch_push_context("c", nil, nil)
        #expect(StallContext.current == nil)
        stallwatch_pop_context()
    }
}
