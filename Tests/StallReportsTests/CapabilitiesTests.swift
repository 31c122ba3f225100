import Testing

@testable import StallReports

@Suite struct CapabilitiesTests {
    private typealias Name = Capabilities.FeatureName
    private typealias Environment = Capabilities.Environment

    private func capabilities(
        _ environment: Environment = Environment(pid: 4700, seccompMode: 0), missing: [Name] = [],
        works: [Name] = Name.known
    ) -> Capabilities {
        var outcomes = Dictionary(uniqueKeysWithValues: works.map { ($0, Capabilities.Outcome.works()) })
        for name in missing { outcomes[name] = .missing("Operation not permitted") }
        return Capabilities(environment, outcomes)
    }

    private func remedies(_ name: Name, _ environment: Environment) -> [String] {
        capabilities(environment, missing: [name])[name]?.remedies ?? []
    }

    @Test func `where everything works nothing is said`() {
        let all = capabilities()
        #expect(all.features.map(\.name) == Name.known)
        #expect(all.missing.isEmpty && !all.isDegraded, "\(all)")
        #expect(all.summary == nil)
        #expect(all.features.allSatisfy { $0.loss == nil && $0.remedies.isEmpty && $0.detail == nil })
    }

    @Test(arguments: Name.known) func `every missing feature has a loss`(name: Capabilities.FeatureName) {
        let feature = capabilities(missing: [name])[name]
        #expect(feature?.state == .missing)
        #expect(feature?.loss?.isEmpty == false)
        #expect(feature?.detail == "Operation not permitted")
    }

    @Test func `every feature has a title of its own`() {
        #expect(Set(Name.known.map(\.title)).count == Name.known.count)
        #expect(Name(rawValue: "new").title == "new")
    }

    @Test func `optional features do not degrade a monitor`() {
        let optional = CapabilityRow.all.filter(\.isOptional).map(\.name)
        #expect(!capabilities(missing: optional).isDegraded)
        #expect(capabilities(missing: optional).summary == nil)
        for name in Name.known where !optional.contains(name) { #expect(capabilities(missing: [name]).isDegraded) }
    }

    @Test func `the summary is one line with each loss`() {
        let summary = capabilities(missing: [.steal, .libdw, .flush]).summary
        #expect(
            summary == """
                no libdw (Operation not permitted): frames have functions, but no files, lines and inlined functions; \
                no flush to the disk (Operation not permitted): a power failure may lose the newest reports; \
                "stallwatch doctor" says what to set
                """
        )
    }

    @Test func `a loss depends on the other missing features`() {
        let alone = capabilities(missing: [.read])[.read]?.loss ?? ""
        let both = capabilities(missing: [.read, .ptrace])
        #expect(alone.contains("stopped with ptrace instead"))
        #expect(both[.read]?.loss == "a blocked thread has no stack")
        // Nothing shows whether a stop would interrupt the call, and so the thread is left alone.
        let opaque = capabilities(missing: [.read, .syscall, .waitChannel])
        #expect(opaque[.read]?.loss == "a blocked thread has no stack")
        #expect(opaque[.syscall]?.loss == "a blocked thread has no cause")
        #expect(both[.ptrace]?.loss?.contains("captured by signal") == true)
        let none = capabilities(missing: [.ptrace, .signal])
        #expect(none[.ptrace]?.loss?.hasPrefix("a running thread has no stack") == true)
    }

    @Test func `a feature without an outcome was not tried`() {
        let nothing = capabilities(works: [])
        #expect(nothing.features.allSatisfy { $0.state == .notTried && $0.detail == "not tried" })
        #expect(!nothing.isDegraded)
        let reason = Capabilities(Environment(pid: 1), [.signal: .notTried("not used")])[.signal]
        #expect(reason?.detail == "not used")
    }

    /// Parts of the remedies, of which the first one is the first remedy's, and what no remedy is about.
    @Test(
        arguments: [
            (
                Environment(pid: 1, seccompMode: 2),
                ["Docker, Podman: --cap-add SYS_PTRACE", "Kubernetes: ", "systemd: SystemCallFilter=ptrace"],
                ["yama", "AppArmor"]
            ),
            (Environment(pid: 1, yamaScope: 2), ["ptrace_scope=1"], []),
            (
                Environment(pid: 1, yamaScope: 3),
                ["the host: sysctl kernel.yama.ptrace_scope=1, which takes effect at the next boot"], ["Docker"]
            ),
            // With the capability, scope 2 forbids nothing.
            (Environment(pid: 1, yamaScope: 2, maySysPtrace: true), [], ["yama"]),
            (
                Environment(pid: 1, securityLabel: "cri-containerd.apparmor.d (enforce)"),
                ["containerd 1.7.0 or newer"], []
            ),
            (Environment(pid: 1, securityLabel: "notes (complain)"), [], ["containerd"]),
            (Environment(pid: 1, isDumpable: false), ["make the process dumpable"], []),
            (Environment(pid: 1, isDumpable: false, maySysPtrace: true), [], ["dump"]),
            (Environment(pid: 1, tracer: 99), ["detach the tracer, process 99"], []),
        ] as [(Environment, [String], [String])])
    private func `the remedies are for what refuses ptrace`(
        environment: Environment, named: [String], others: [String]
    ) {
        let found = remedies(.ptrace, environment)
        if let first = named.first { #expect(found.first?.contains(first) == true, "\(found)") }
        for part in named { #expect(found.contains { $0.contains(part) }, "\(found)") }
        for part in others { #expect(!found.contains { $0.contains(part) }, "\(found)") }
    }

    @Test func `where nothing forbids ptrace visibly, that is said`() {
        #expect(remedies(.ptrace, Environment(pid: 1, seccompMode: 0, yamaScope: 1)).count == 1)
    }

    @Test func `a sandbox or a process that is not dumpable hides files`() {
        #expect(remedies(.syscall, Environment(pid: 1)).first?.contains("gVisor") == true)
        #expect(remedies(.syscall, Environment(pid: 1, isDumpable: false)).first?.contains("dumpable") == true)
        #expect(remedies(.schedstat, Environment(pid: 1)).first?.contains("gVisor") == true)
    }

    @Test func `JSON is read as it was written`() {
        let written = capabilities(
            Environment(
                pid: 4700, userID: 1000, kernel: "6.1.0", architecture: "x86_64", seccompMode: 2,
                hasNoNewPrivileges: true, yamaScope: 1, securityLabel: "docker-default (enforce)", isDumpable: true,
                maySysPtrace: false, perfEventParanoid: 3, tracer: 5
            ), missing: [.ptrace, .steal]
        )
        #expect(Capabilities(jsonData: written.jsonData()) == written)
        #expect(Capabilities(jsonData: Array("{}".utf8)) == nil)
        #expect(Capabilities(jsonData: []) == nil)
    }
}
