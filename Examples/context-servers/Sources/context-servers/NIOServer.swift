import NIOCore
import NIOHTTP1
import NIOPosix

/// A server on SwiftNIO, whose handlers run on its event loop.
enum NIOServer {
    /// Starts the server.
    ///
    /// - Parameter group: Its event loops.
    /// - Returns: The port.
    /// - Throws: The errors of the server.
    static func start(on group: MultiThreadedEventLoopGroup) async throws -> Int {
        let channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 256)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandlers([StallContextHandler(), RequestHandler()])
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return channel.localAddress?.port ?? 0
    }
}

/// Carries out requests on the event loop.
private final class RequestHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart
    private var number = -1

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): number = head.uri.split(separator: "/").last.flatMap { Int($0) } ?? -1
        case .body: break
        case .end:
            Work.run(number)
            let head = HTTPResponseHead(version: .http1_1, status: .ok, headers: ["connection": "close"])
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
            context.close(promise: nil)
        }
    }
}
