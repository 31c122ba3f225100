import CDemo
import Dispatch
import Foundation
import Synchronization

/// The number of actions of a kind.
struct ChaosCount: Equatable, Encodable, Sendable {
    var done = 0
    var failed = 0
    var isRefused = false
}
