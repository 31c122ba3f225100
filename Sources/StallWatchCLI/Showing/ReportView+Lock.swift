import StallReports
import TextOutput

extension ReportView {
    /// The awaited lock, its owner, and the lock that the owner awaits in turn.
    var lockChain: String {
        guard let lock = report.cause?.lock else { return "" }
        let label = lock.label.map { " \"\($0)\"" } ?? ""
        let address = lock.address.map { " at \($0)" } ?? ""
        let function = lock.function.map { ", in \($0)" } ?? ""
        var text = terminal.style(lock.isDeadlock ? "Deadlock" : "Lock", .bold) + "\n"
        text += paragraph(
            "  \(report.loop.label) waits for a \(lock.kind.rawValue)\(label)\(address)\(function)", indentation: "    "
        )
        if let reason = lock.reason { text += paragraph("  its owner is not known: \(reason)", indentation: "    ") }
        for (depth, owner) in lock.owners.enumerated() {
            let indentation = String(repeating: "  ", count: min(depth, 10) + 1)
            text += paragraph("\(indentation)└ held by \(words(for: owner))", indentation: indentation + "    ")
            if let stack = owner.stack { text += frames(of: stack, indentation: indentation + "    ") }
        }
        if lock.isDeadlock {
            let end =
                report.state == .ended
                ? "it ended after \(report.durationMilliseconds.duration)" : "no thread can continue"
            text += "  The threads wait in a cycle: \(end).\n"
        }
        return text
    }

    private func words(for owner: StallReport.LockOwner) -> String {
        var text = "thread \(owner.thread.id)"
        if let name = owner.thread.name { text += " \"\(name)\"" }
        if owner.isRunning {
            text += ", which is running"
        } else if let call = owner.systemCall {
            text += ", which is in \(call.name)" + (call.target.map { "(\($0))" } ?? "")
        }
        if let kind = owner.waitsFor {
            text += ", and waits for a \(kind.rawValue)" + (owner.waitsForAddress.map { " at \($0)" } ?? "")
        }
        return text
    }
}
