// swift-tools-version: 6.2
import PackageDescription

// Servers whose reports name the request that stalled: docs/guides/Server.md. `make context-servers` counts how often.
let package = Package(
    name: "context-servers",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "StallWatch", path: "../..", traits: ["NIO", "Tracing"]),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
    ],
    targets: [
        .target(name: "CSilentServer"),
        .executableTarget(
            name: "context-servers",
            dependencies: [
                "CSilentServer",
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "StallWatch", package: "StallWatch"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ]
        ),
    ]
)
