// swift-tools-version: 6.2
import PackageDescription

// StallWatch as a plugin of StallBench's driver: what a program with a loop of its own does with a LoopProbe.
let package = Package(
    name: "stallbench-stallwatch",
    products: [.library(name: "stallbench-stallwatch", type: .dynamic, targets: ["stallbench-stallwatch"])],
    dependencies: [.package(name: "StallWatch", path: "../../../..")],
    targets: [
        .target(
            name: "stallbench-stallwatch",
            dependencies: [.product(name: "StallWatch", package: "StallWatch")],
            swiftSettings: [.swiftLanguageMode(.v6)]
        )
    ]
)
