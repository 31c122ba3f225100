// swift-tools-version: 6.2
import PackageDescription

// A Hummingbird server whose event loops and task pool are watched: docs/guides/Server.md.
let package = Package(
    name: "notes",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "StallWatch", path: "../..", traits: ["NIO", "ServiceLifecycle"]),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    ],
    targets: [
        .executableTarget(
            name: "notes",
            dependencies: [
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "StallWatch", package: "StallWatch"),
            ]
        )
    ]
)
