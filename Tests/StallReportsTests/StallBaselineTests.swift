import Testing

@testable import StallReports

@Suite struct StallBaselineTests {
    private let fingerprint = "9f2c41d07a3be815"

    private func day(_ text: String) throws -> CalendarDay { try #require(CalendarDay(text)) }

    private func baseline(until day: String) throws -> StallBaseline {
        StallBaseline([StallBaseline.Entry(fingerprint: fingerprint, expires: try self.day(day))])
    }

    @Test func `an entry excuses its stall up to and including its day`() throws {
        let baseline = try baseline(until: "2027-03-31")
        #expect(baseline.excuses(fingerprint, on: try day("2027-03-31")))
        #expect(!baseline.excuses(fingerprint, on: try day("2027-04-01")))
        #expect(!baseline.excuses("0000000000000000", on: try day("2027-03-01")))
        #expect(!baseline.excuses(nil, on: try day("2027-03-01")))
    }

    @Test func `an expired entry is found from the next day on`() throws {
        let baseline = try baseline(until: "2027-03-31")
        #expect(baseline.expired(fingerprint, on: try day("2027-03-31")) == nil)
        #expect(baseline.expired(fingerprint, on: try day("2027-04-01"))?.expires.description == "2027-03-31")
    }

    @Test func `an entry that exists stays as it is`() throws {
        var baseline = try baseline(until: "2027-03-31")
        let wasAdded = baseline.add(StallBaseline.Entry(fingerprint: fingerprint, expires: try day("2029-01-01")))
        #expect(!wasAdded)
        #expect(baseline.entries.map(\.expires.description) == ["2027-03-31"])
    }

    @Test func `a written file is read as it was`() throws {
        let entry = StallBaseline.Entry(
            fingerprint: fingerprint, expires: try day("2027-03-31"), loop: "main", culprit: "save(_:)",
            cause: "A \"wait\".")
        let baseline = StallBaseline([entry])
        #expect(try StallBaseline(jsonData: baseline.jsonData()) == baseline)
    }

    @Test(arguments: [
        ("", "the file is empty"),
        ("{\"version\": 1}", "stalls"),
        ("{\"version\": 2, \"stalls\": []}", "version is 2, but has to be 1"),
        (#"{"version": 1, "stalls": [{"fingerprint": "9f2c", "expires": "2027-03-31"}]}"#, "stalls[0].fingerprint"),
        (#"{"version": 1, "stalls": [{"fingerprint": "9f2c41d07a3be815", "expires": "soon"}]}"#, "is not a day like"),
        (#"{"version": 1, "stalls": [{"fingerprint": "9f2c41d07a3be815"}]}"#, "expires"),
        (
            #"{"version": 1, "stalls": [{"fingerprint": "9f2c41d07a3be815", "expires": "2027-03-31"}, "#
                + #"{"fingerprint": "9f2c41d07a3be815", "expires": "2027-04-30"}]}"#, "stalls[1].fingerprint"
        ),
    ])
    func `a damaged file is refused with the place of the fault`(json: String, part: String) throws {
        let error = try #require(throws: StallWatchError.self) { try StallBaseline(jsonData: Array(json.utf8)) }
        #expect(error.message.contains(part), "\(error.message)")
    }
}

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
