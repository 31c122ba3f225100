internal import CLinux
import LinuxSupport
internal import StackCapture
internal import StallReports

extension StallContext {
    /// The calibration of this process, carried out when it is first asked for.
    ///
    /// Takes about a millisecond, on short-lived threads. From then on captures have contexts.
    static let calibration: ContextCalibration = {
        let calibration = ContextCalibration(publisher)
        CUnwindEngine.publish(calibration.layout)
        return calibration
    }()

    /// What the calibration must know; it publishes a context of its own.
    static var publisher: ContextPublisher {
        let context = StallContext("calibration")
        let object = UInt64(UInt(bitPattern: Unmanaged.passUnretained(context.storage).toOpaque()))
        // The functions keep the context, so the address stays its own.
        return ContextPublisher(
            key: UInt64(UInt(bitPattern: ObjectIdentifier(StallContext.$current))),
            value: object,
            payloadOffset: context.storage.address - object,
            payload: context.storage.payload.bytes,
            bind: { body in StallContext.$current.withValue(context, operation: body) },
            bindAsync: { body in await StallContext.$current.withValue(context, operation: body) },
            enter: { body in withStallContext(context, body: body) },
            scope: { clinux_scope_variable() }
        )
    }
}
