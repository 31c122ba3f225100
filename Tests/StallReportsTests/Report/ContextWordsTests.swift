import StallReports
import Testing

@Suite struct ContextWordsTests {
    @Test func `a context is one line`() {
        let context = StallReport.Context(
            taskID: 12, taskName: "feed", label: "GET /feed", traceID: "4bf9", spanID: "00f0",
            attributes: ["b": "2", "a": "1"], isCut: true, omittedAttributes: 1)
        #expect(
            context.inWords == "GET /feed, task 12 \"feed\", trace 4bf9, span 00f0, a=1, b=2, 1 more attribute, cut")
        #expect(StallReport.Context(taskID: 3).inWords == "task 3")
        #expect(StallReport.Context(label: "", omittedAttributes: 2).inWords == "(empty label), 2 more attributes")
    }

    @Test func `a context is grouped by its label, else by its task's name`() {
        #expect(StallReport.Context(taskName: "feed", label: "GET /feed").name == "GET /feed")
        #expect(StallReport.Context(taskName: "feed").name == "feed")
        #expect(StallReport.Context(taskID: 3).name == nil)
    }
}
