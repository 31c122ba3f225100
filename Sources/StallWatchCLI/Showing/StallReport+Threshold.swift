import StallReports

extension StallReport {
    /// The threshold with its unit, and whether the monitor learned it.
    var thresholdInWords: String {
        thresholdMilliseconds.duration + (isThresholdAdaptive == true ? ", adaptive" : "")
    }
}
