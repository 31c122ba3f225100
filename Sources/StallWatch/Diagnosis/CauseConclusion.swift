/// The result of ``CauseRules``: a cause and the observation that shows it.
struct CauseConclusion {
    var kind: Cause.Kind
    var confidence: Cause.Confidence
    /// The observation that shows the cause best; `nil` when the cause needs none.
    var observation: Observation?
}
