import StallReports

/// A destination of reports.
///
/// Created and used only on the sink's own thread.
protocol Sink: AnyObject {
    /// Called once, before the first delivery.
    func start()

    /// Handles one delivery; may block.
    ///
    /// - Parameter delivery: The delivery.
    /// - Throws: An error if the delivery failed; a store's worker then tries it again later.
    func take(_ delivery: Delivery) throws(StallWatchError)

    /// Called once, after the last delivery.
    func finish()
}

extension Sink {
    func start() {}
    func finish() {}
}
