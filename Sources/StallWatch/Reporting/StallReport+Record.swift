import LinuxSupport
import StallReports

extension StallReport.ThreadDescription {
    init(_ thread: ThreadIdentity) {
        self.init(id: thread.id, name: thread.name)
    }
}

extension StallReport.LoopDescription {
    init(_ loop: StallRecord.Loop) {
        self.init(
            label: loop.label, kind: .init(rawValue: loop.kind.rawValue), mode: loop.mode, turn: loop.turn,
            nesting: loop.nesting, thread: loop.thread.map(StallReport.ThreadDescription.init)
        )
    }
}
