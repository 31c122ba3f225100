// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "RealPackages",
    dependencies: [
        .package(name: "StallWatch", path: "../../..", traits: ["NIO"]),
        .package(url: "https://github.com/apple/swift-algorithms", from: "1.2.1"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/attaswift/BigInt", from: "6.0.0"),
        .package(url: "https://github.com/hummingbird-project/swift-mustache", from: "2.1.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.0.0"),
        .package(url: "https://github.com/swhitty/FlyingFox", from: "0.27.1"),
        .package(url: "https://github.com/swiftcsv/SwiftCSV", from: "0.10.0"),
    ],
    targets: [
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .target(name: "CxxWords"),
        .executableTarget(
            name: "real-packages",
            dependencies: [
                "CZlib", "CxxWords",
                .product(name: "StallWatch", package: "StallWatch"),
                .product(name: "Algorithms", package: "swift-algorithms"),
                .product(name: "BigInt", package: "BigInt"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "FlyingFox", package: "FlyingFox"),
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "Mustache", package: "swift-mustache"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "OrderedCollections", package: "swift-collections"),
                .product(name: "SwiftCSV", package: "SwiftCSV"),
                .product(name: "Yams", package: "Yams"),
            ],
            exclude: ["Heavy"],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
    ]
)

// It takes minutes to compile: `make packages` has it, but `make test-all` does not.
if Context.environment["HEAVY_PACKAGES"] == "1" {
    package.dependencies.append(.package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"))
    for program in package.targets where program.name == "real-packages" {
        program.dependencies.append(.product(name: "GRDB", package: "GRDB.swift"))
        program.exclude = []
        program.swiftSettings?.append(.define("HEAVY_PACKAGES"))
    }
}
