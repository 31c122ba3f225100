/// What became of the reports.
struct ShipTotals: Sendable, Equatable {
    /// Reports that a collector has.
    var sent = 0
    /// Reports that are kept aside.
    var setAside = 0
    /// Reports whose files were removed before they were read.
    var gone = 0

    static func + (left: ShipTotals, right: ShipTotals) -> ShipTotals {
        ShipTotals(
            sent: left.sent + right.sent, setAside: left.setAside + right.setAside, gone: left.gone + right.gone)
    }
}
