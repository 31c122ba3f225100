import NIOCore
import NIOHTTP1
import StallWatch

/// Gives the stalls of each request its route, while its event loop runs the handlers behind this one.
final class StallContextHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    private var stall = StallContext("between requests")

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .head(let head) = unwrapInboundIn(data) {
            stall = StallContext("\(head.method) \(head.uri)", tracing: span(of: head))
        }
        withStallContext(stall) { context.fireChannelRead(data) }
    }
}
