import Testing

@testable import StackCapture
@testable import StallReports
@testable import StallWatch

@Suite struct ContextCalibrationTests {
    @Test func `every part is found here`() {
        let calibration = StallContext.calibration
        #expect(calibration.problem == nil)
        let layout = calibration.layout
        #expect(layout.task != nil && layout.hasTaskNames && layout.plainLocals != nil && layout.scope != nil)
        #expect(layout.robustList != nil && layout.record == nil)
    }

    /// A publisher whose facts are wrong stands for a runtime with another layout.
    private func publisher(_ change: (inout ContextPublisher) -> Void) -> ContextPublisher {
        var publisher = StallContext.publisher
        change(&publisher)
        return publisher
    }

    @Test func `with another value nothing is read`() {
        let calibration = ContextCalibration(publisher { $0.payload = ContextPayload(label: "another").bytes })
        #expect(calibration.taskProblem == "the Swift runtime's tasks do not have the expected layout")
        #expect(calibration.layout.task == nil && !calibration.layout.hasTaskNames)
        #expect(calibration.layout.plainLocals == nil && calibration.layout.scope == nil)
    }

    @Test func `with another key no task is read`() {
        let calibration = ContextCalibration(publisher { $0.key += 8 })
        #expect(calibration.layout.task == nil && calibration.layout.plainLocals == nil)
        #expect(calibration.taskProblem != nil && calibration.problem != nil)
        #expect(calibration.layout.scope != nil, "a scope needs nothing of the runtime")
    }

    @Test func `with another place no scope is read`() {
        let calibration = ContextCalibration(publisher { $0.enter = { $0() } })
        #expect(calibration.layout.scope == nil && calibration.layout.task != nil)
    }
}
