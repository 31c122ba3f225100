import CDemo
import Dispatch
import Foundation
import Synchronization

/// The result of one action.
enum ChaosResult {
    case done, failed
    /// The system does not permit it.
    case refused

    init(_ isDone: Bool) {
        self = isDone ? .done : .failed
    }

    init(_ result: demo_clock_result) {
        switch result {
        case DEMO_CLOCK_STEPPED: self = .done
        case DEMO_CLOCK_REFUSED: self = .refused
        default: self = .failed
        }
    }
}
