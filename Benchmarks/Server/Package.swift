// swift-tools-version: 6.2
import PackageDescription

// Apart from the other benchmarks, because Hummingbird takes minutes to build.
let package = Package(
    name: "WatchedServer",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "StallWatch", path: "../..", traits: ["NIO"]),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    ],
    targets: [
        .executableTarget(
            name: "watched-server",
            dependencies: [
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "StallWatch", package: "StallWatch"),
            ],
            swiftSettings: [.swiftLanguageMode(.v6)]
        )
    ]
)
