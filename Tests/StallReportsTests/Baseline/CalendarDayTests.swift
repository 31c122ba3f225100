import Testing

@testable import StallReports

@Suite struct CalendarDayTests {
    @Test(arguments: ["2027-03-31", "2028-02-29", "1999-12-31"])
    func `a day is read and written`(text: String) {
        #expect(CalendarDay(text)?.description == text)
    }

    @Test(arguments: ["2027-02-29", "2027-13-01", "2027-3-1", "2027-03-31T00:00", "tomorrow", ""])
    func `a day that does not exist is refused`(text: String) {
        #expect(CalendarDay(text) == nil)
    }

    @Test func `days are counted across months`() {
        #expect(CalendarDay("2027-02-20")?.adding(days: 30).description == "2027-03-22")
    }

    @Test func `the last moment of a day belongs to it`() throws {
        let end = try #require(Timestamp("2027-03-31T23:59:59.999999Z"))
        #expect(CalendarDay(end).description == "2027-03-31")
        let early = try #require(Timestamp("1969-12-31T23:59:59.999999Z"))
        #expect(CalendarDay(early).description == "1969-12-31")
    }

    @Test func `days have an order`() throws {
        #expect(try #require(CalendarDay("2027-03-31")) < #require(CalendarDay("2027-04-01")))
    }
}
