import Testing

@testable import StallReports
@testable import StallWatch

@Suite struct RecordMailboxTests {
    @Test func `a mailbox is idle once its reader has come back for more`() {
        let mailbox = RecordMailbox()
        #expect(mailbox.isIdle)
        _ = mailbox.put(.fixture())
        #expect(!mailbox.isIdle)
        #expect(mailbox.next() != nil)
        // The reader still works on the record.
        #expect(!mailbox.isIdle)
        mailbox.close()
        #expect(mailbox.next() == nil)
        #expect(mailbox.isIdle)
    }
}
