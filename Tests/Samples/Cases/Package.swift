// swift-tools-version: 6.2
import PackageDescription

// Small programs that once showed a fault of the library. README.md says how to run each, and what is right.
let package = Package(
    name: "Cases",
    dependencies: [
        .package(name: "StallWatch", path: "../../..", traits: ["NIO"]),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.80.0"),
    ],
    targets: ["case-app", "case-host", "case-names", "case-pool", "case-queues"].map { name in
        .executableTarget(
            name: name,
            dependencies: [
                .product(name: "StallWatch", package: "StallWatch"), .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: [.swiftLanguageMode(.v5)])
    }
)
