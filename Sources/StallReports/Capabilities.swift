internal import Foundation

/// The features of StallWatch that work in one process, found by trying them there.
///
/// For a missing feature, ``Feature/loss`` says what reports lack, and ``Feature/remedies`` how to enable it.
public struct Capabilities: Codable, Sendable, Equatable {
    /// The name of a monitor's watchdog thread, by which `stallwatch doctor` finds monitored processes.
    package static let watchdogThread = "stallwatch-dog"

    /// The version of StallWatch that tried the features.
    public var version: String = StallWatchVersion.current
    /// The system's rules for the process.
    public var environment: Environment
    /// All features, in a fixed order.
    public var features: [Feature]

    /// The name of the unlinked file that holds a running monitor's capabilities.
    package static let fileName = "stallwatch-capabilities"

    package init(environment: Environment, features: [Feature]) {
        self.environment = environment
        self.features = features
    }

    /// Returns the feature with that name; `nil` if an older version did not know it.
    public subscript(name: FeatureName) -> Feature? { features.first { $0.name == name } }

    /// The missing features.
    public var missing: [Feature] { features.filter { $0.state == .missing } }

    /// Whether a report may lack its stack, its cause, its context, its source lines, or its durability.
    public var isDegraded: Bool { missing.contains { !$0.isOptional } }

    /// The capabilities as JSON: UTF-8, indented, with sorted keys and a line feed at the end.
    ///
    /// Never empty: encoding cannot fail.
    public func jsonData() -> [UInt8] { encodeJSON(self, isIndented: true) }

    /// Decodes capabilities; `nil` for any other document.
    package init?(jsonData: [UInt8]) {
        guard let decoded = try? JSONDecoder().decode(Capabilities.self, from: Data(jsonData)) else { return nil }
        self = decoded
    }
}

extension Capabilities {
    /// A feature that a system may lack or forbid.
    public struct Feature: Codable, Sendable, Equatable {
        /// The feature's name.
        public var name: FeatureName
        /// Whether the feature works.
        public var state: State
        /// The reason for the state, such as "Operation not permitted"; `nil` if there is nothing to add.
        public var detail: String?
        /// The data that reports lack without the feature; `nil` unless it is missing.
        public var loss: String?
        /// The settings, packages or versions that enable the feature; empty unless it is missing.
        ///
        /// They are alternatives for different runtimes. If several rules forbid a feature, all of them must be lifted.
        public var remedies: [String]
        /// Whether reports are complete without the feature, which only adds details.
        public var isOptional: Bool
    }

    /// The name of a feature.
    public typealias FeatureName = Word<Feature>

    /// The result of trying a feature.
    public typealias State = Word<Capabilities>

    /// The system's rules for a process.
    public struct Environment: Codable, Sendable, Equatable {
        /// The process id.
        public var pid: Int32
        /// The effective user id; `nil` if unknown.
        public var userID: UInt32?
        /// The kernel's release, as from `uname -r`.
        public var kernel: String = ""
        /// The machine's architecture, such as `x86_64`.
        public var architecture: String = ""
        /// The seccomp mode: 0 for none, 1 for strict, 2 for a filter of system calls; `nil` if unknown.
        public var seccompMode: Int?
        /// Whether the process can never gain privileges (prctl(2), PR_SET_NO_NEW_PRIVS); `nil` if unknown.
        public var hasNoNewPrivileges: Bool?
        /// The scope of Yama, 0 to 3; `nil` if the kernel has no Yama or does not show it.
        public var yamaScope: Int?
        /// The AppArmor profile with its mode, or the label of another security module; `nil` if there is none.
        public var securityLabel: String?
        /// Whether the process is dumpable (prctl(2), PR_GET_DUMPABLE); `nil` if unknown.
        public var isDumpable: Bool?
        /// Whether the process has CAP_SYS_PTRACE; `nil` if unknown.
        public var maySysPtrace: Bool?
        /// The value of the sysctl kernel.perf_event_paranoid; `nil` if the kernel has no perf events.
        public var perfEventParanoid: Int?
        /// The process that traces this one, such as a debugger; `nil` if there is none.
        public var tracer: Int32?
        /// Whether /proc belongs to another PID namespace, so that it does not show the process's threads under their ids;
        /// `nil` if it does not.
        public var isProcForeign: Bool?
    }

    /// The result of one attempt.
    package enum Outcome: Sendable, Equatable {
        case works(String? = nil)
        case missing(String? = nil)
        case notTried(String)
    }

    /// Turns the results of attempts into features with their losses and remedies; one without a result was not tried.
    package init(_ environment: Environment, _ outcomes: [FeatureName: Outcome]) {
        let missing = Set(outcomes.filter { if case .missing = $0.value { true } else { false } }.keys)
        let remedies = CapabilityRemedies(environment: environment, missing: missing)
        self.init(
            environment: environment,
            features: CapabilityRow.all.map { row in
                var feature = Feature(name: row.name, state: .notTried, remedies: [], isOptional: row.isOptional)
                switch outcomes[row.name] {
                case .works(let detail):
                    feature.state = .works
                    feature.detail = detail
                case .missing(let detail):
                    feature.state = .missing
                    feature.detail = detail
                    feature.loss = row.loss(missing)
                    feature.remedies = row.remedies(remedies)
                case .notTried(let reason): feature.detail = reason
                case nil: feature.detail = "not tried"
                }
                return feature
            }
        )
    }
}

extension Capabilities.State {
    /// The feature was tried and works.
    public static var works: Self { Self(rawValue: "works") }
    /// The feature was tried and does not work.
    public static var missing: Self { Self(rawValue: "missing") }
    /// The feature was not tried, for the reason in ``Capabilities/Feature/detail``.
    public static var notTried: Self { Self(rawValue: "notTried") }
}
