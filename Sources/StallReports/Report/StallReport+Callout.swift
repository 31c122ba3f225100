extension StallReport.Callout {
    /// Finds the callout in a stack; `nil` if there is none.
    ///
    /// - Parameter symbols: The stack's symbols, innermost first. The innermost callout belongs to the turn.
    package init?(symbols: [String?]) {
        for symbol in symbols {
            guard let callout = Self(symbol: symbol) else { continue }
            self = callout
            return
        }
        return nil
    }

    /// The callout of a function through which a CFRunLoop calls out (CFRunLoop.c); `nil` for any other function.
    package init?(symbol: String?) {
        // Most functions are none, and this is asked for every frame.
        guard let symbol, symbol.hasPrefix("__CFRUNLOOP_IS_") else { return nil }
        switch symbol {
        case "__CFRUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION__": self = .timer
        case "__CFRUNLOOP_IS_CALLING_OUT_TO_A_SOURCE0_PERFORM_FUNCTION__": self = .source0
        case "__CFRUNLOOP_IS_CALLING_OUT_TO_A_SOURCE1_PERFORM_FUNCTION__": self = .source1
        case "__CFRUNLOOP_IS_CALLING_OUT_TO_A_BLOCK__": self = .performedBlock
        case "__CFRUNLOOP_IS_CALLING_OUT_TO_AN_OBSERVER_CALLBACK_FUNCTION__": self = .observer
        case "__CFRUNLOOP_IS_SERVICING_THE_MAIN_DISPATCH_QUEUE__": self = .mainQueue
        default: return nil
        }
    }
}
