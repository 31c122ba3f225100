# The commands for working on StallWatch. `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Each target uses all processors by itself, and two builds would wait for each other's lock.
.NOTPARALLEL:

SWIFT := swift
# The package manager passes traits in the order of a set. With another order than in the build before it compiles everything
# again, which took minutes of make test.
BUILD := env SWIFT_DETERMINISTIC_HASHING=1 $(SWIFT) build
CLANG_FORMAT := clang-format
SWIFT_SOURCES := Package.swift Sources Plugins Tests Benchmarks Examples
C_SOURCES = $(shell find Sources Examples Tests Benchmarks -name '.build*' -prune -o \( -name '*.c' -o -name '*.cpp' -o -name '*.h' \) -print)
# More options for the demo: make demo DEMO="--all --output /tmp/stalls"
DEMO :=
# More options for the scenarios: make scenarios SCENARIOS="--scenario lock --threshold 100ms"
SCENARIOS :=

.PHONY: help
help: ## List the commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: install ## Run a small app whose main loop freezes five times, and print what is reported (DEMO=--all: in fifteen ways)
	$(BUILD) --product stallwatch-demo
	"$$($(SWIFT) build --show-bin-path)/stallwatch-demo" $(DEMO)

.PHONY: scenarios
scenarios: install ## Stall real loops in every way and check each report, in stalls/
	$(BUILD) --product stallwatch-scenarios
	"$$($(SWIFT) build --show-bin-path)/stallwatch-scenarios" $(SCENARIOS)

.PHONY: run-loop
run-loop: install ## Write the table of docs/RunLoop.md, and print the delay from each wake-up to its callout
	$(BUILD) --product stallwatch-scenarios
	"$$($(SWIFT) build --show-bin-path)/stallwatch-scenarios" order --delays --page docs/RunLoop.md

# Longer: make soak SOAK=8h. The same order again, with steps of the machine's clock: make soak SCENARIOS="--seed 42 --step-clock"
SOAK := 10m

.PHONY: soak
soak: install ## Run all scenarios in random order for ten minutes (SOAK=8h) beside forks, exceptions and page-outs; detect leaks
	$(BUILD) --product stallwatch-scenarios
	"$$($(SWIFT) build --show-bin-path)/stallwatch-scenarios" --soak $(SOAK) $(SCENARIOS)

# Shorter: make hostile-soak MINUTES=2
MINUTES := 60

.PHONY: hostile-soak
hostile-soak: install ## Stall 500 loops in each of three hostile containers for an hour (MINUTES=n), and check that no stall is lost (needs root)
	$(BUILD) --product stallwatch-test-host
	Tests/Programs/hostile-soak.py --host "$$($(SWIFT) build --show-bin-path)/stallwatch-test-host" --minutes $(MINUTES)

# Fewer: make proofs PROOFS=100
PROOFS := 1000

.PHONY: proofs
proofs: install ## Let a monitor prove itself 1,000 times in a busy app (PROOFS=n), and check that no stall is missed, nothing grows and most are whole
	$(BUILD) --product stallwatch-test-host
	reports=$$(mktemp -d) && trap 'rm -rf -- "$$reports"' EXIT && \
		MALLOC_ARENA_MAX=1 "$$($(SWIFT) build --show-bin-path)/stallwatch-test-host" proofs "$$reports" $(PROOFS)

# Longer: make healthy HEALTHY=1h
HEALTHY := 10m

.PHONY: healthy
healthy: install ## Run healthy loops of five kinds for ten minutes (HEALTHY=1h), and fail if one is reported
	$(BUILD) --product stallwatch-scenarios
	"$$($(SWIFT) build --show-bin-path)/stallwatch-scenarios" --healthy $(HEALTHY) $(SCENARIOS)

# For all users: make install-cli PREFIX=/usr/local
PREFIX := $(HOME)/.local

.PHONY: install-cli
install-cli: install ## Build the tool and install it with its man page and completions (PREFIX=~/.local)
	scripts/install-cli.sh "$(PREFIX)"

# Fewer rounds: make stress ROUNDS=3
ROUNDS := 20

.PHONY: stress
stress: install ## Run all scenarios twenty times (ROUNDS=n) and count the right reports: two minutes per round
	$(BUILD) -c release --product stallwatch-scenarios --enable-all-traits
	"$$($(SWIFT) build -c release --show-bin-path)/stallwatch-scenarios" --rounds $(ROUNDS) $(SCENARIOS)

# Unit tests, and tests that start programs and wait for them, run in parallel. Tests that the clock decides run one after
# another, with the machine to themselves. Those that build packages, or take minutes, are left to make test-all.
UNIT_TESTS := ^(LinuxSupport|StallReports|StallSymbols|StackCapture|StallWatch|StallWatchTesting|TextOutput|StallWatchCLI|ScenarioKit)Tests\.
PROGRAM_TESTS := ^(ProgramTests\.|CUnwindTests\.FuzzTests)
LONG_TESTS := ^ClockTests\.(Example|Soak)Tests
# Races and random inputs, of which make test-all has three times as many.
RANDOM_TESTS := FuzzTests|MutationTests|ReplacedProgramTests|damagedFilesAreErrors|no edge is wrong|hides no task|randomWords|killedAtRandom|a limit on addresses
# More options: make mutations MUTATIONS="--all"
MUTATIONS :=
# Each part takes a few minutes and is ended after 30, so that a test that hangs is a failure.
BOUND := 30m
BOUNDED = Tests/Programs/summarize-failures.sh timeout --signal=INT --kill-after=10s $(BOUND)
TESTS = $(BOUNDED) $(SWIFT) test --skip-build --enable-all-traits --disable-xctest
# Keeps how long each step of make test takes.
export STEPS := $(CURDIR)/.build/steps
STEP := @Tests/Programs/step.sh
# What a test needs of the debug build. In a step of make test or make test-all that is built already: to find that nothing is
# to be built takes seconds.
BUILT_TESTS := $(if $(IN_STEP),,build-tests)
built = $(if $(IN_STEP),,for product in $(1); do $(BUILD) --product $$product --enable-all-traits || exit; done)
TOOL := stallwatch StallWatchAgent StallWatchPreload

.PHONY: unit
unit: install build-tests ## Build and run the unit tests: for daily work
	$(SWIFT) test --skip-build --enable-all-traits --disable-xctest --filter '$(UNIT_TESTS)'

.PHONY: test
test: export NOT_RUN := $(CURDIR)/.build/not-run-test
test: ## Build once, in debug, and run the tests
	@mkdir -p .build && rm -f -- "$(STEPS)" "$(NOT_RUN)"
	$(STEP) 'Install packages' $(MAKE) --no-print-directory install-for-tests
	$(STEP) 'Install Python packages' $(MAKE) --no-print-directory install-python
	$(STEP) 'Script tests' $(MAKE) --no-print-directory script-tests
	$(STEP) 'Build' $(MAKE) --no-print-directory build-tests
	$(STEP) 'Public API' scripts/check-api.py
	$(STEP) 'Unit tests and tests of programs' $(MAKE) --no-print-directory untimed-tests
	$(STEP) 'Tests by the clock' $(MAKE) --no-print-directory clock-tests
	$(STEP) 'Installed tool' Tests/ScriptTests/install-cli-tests.sh
	$(STEP) 'Agents' $(MAKE) --no-print-directory fleet-agents COLLECTED=1000 AGENT_KILLS=3
	$(STEP) 'Queries' $(MAKE) --no-print-directory fleet-queries QUERIED=5000 HISTORIES=3
	@Tests/Programs/step.sh

.PHONY: build-tests untimed-tests unit-tests program-tests clock-tests
build-tests:
	$(BUILD) --build-tests --enable-all-traits
# Tests of programs mostly wait for them. No clock judges the unit tests, which leave them the processors.
untimed-tests:
	nice -n 19 $(MAKE) --no-print-directory unit-tests & \
	$(MAKE) --no-print-directory program-tests || failed=1; wait $$! || failed=1; [ -z "$${failed-}" ]
unit-tests:
	$(TESTS) --ignore-lock --filter '$(UNIT_TESTS)'
program-tests:
	$(TESTS) --ignore-lock --filter '$(PROGRAM_TESTS)'
clock-tests:
	$(TESTS) --no-parallel --skip '$(UNIT_TESTS)|$(PROGRAM_TESTS)|$(LONG_TESTS)'

# The other builds, and then their tests: nothing is built beside a test.
.PHONY: test-all
test-all: export NOT_RUN := $(CURDIR)/.build/not-run-test-all
test-all: ## Run what make test leaves out: published packages, samples, cases, examples, the soak, stacks, StallBench, the inert library
	@mkdir -p .build && rm -f -- "$(STEPS)" "$(NOT_RUN)"
	$(STEP) 'Build' $(MAKE) --no-print-directory build-tests
	$(STEP) 'Samples and cases' $(MAKE) --no-print-directory sample-builds
	$(STEP) 'Published packages' $(MAKE) --no-print-directory packages-light
	$(STEP) 'Cases' $(MAKE) --no-print-directory run-cases
	$(STEP) 'Stalls in tests' $(MAKE) --no-print-directory stalls-in-tests
	$(STEP) 'Long tests' $(MAKE) --no-print-directory long-tests
	$(STEP) 'Stack oracle' $(MAKE) --no-print-directory stack-oracle
	$(STEP) 'StallBench' $(MAKE) --no-print-directory stallbench-short
	$(STEP) 'Inert library' $(MAKE) --no-print-directory inert
	@Tests/Programs/step.sh

# A release build compiles each module on one processor, and many wait for one: debug builds use what it leaves, and do not
# delay it. A build of published packages that fails is done again, and judged, by packages-light.
.PHONY: sample-builds release-samples debug-samples
sample-builds: install
	$(MAKE) --no-print-directory release-samples & \
	nice -n 19 $(MAKE) --no-print-directory debug-samples || failed=1; wait $$! || failed=1; [ -z "$${failed-}" ]
release-samples:
	Tests/Programs/real-packages.sh release-static --build-only || true
	$(MAKE) --no-print-directory cases
debug-samples:
	$(BUILD) --package-path Tests/Samples/StallsInTests --build-tests
	$(GLIB_EXAMPLE)
	STALLWATCH_INERT=1 $(BUILD) --scratch-path .build-inert --product StallWatchPackageTests

.PHONY: mutations
mutations: install-for-tests install-python ## Put twenty faults into a copy of the product and say which tests find each: hours
	Tests/Programs/mutations.py $(MUTATIONS)

# More captures, or one kind of build again: make stack-oracle COUNT=5000 ORACLE="--kind lld --seed 7"
ORACLE :=

.PHONY: stack-oracle
stack-oracle: COUNT := 500
stack-oracle: ## Capture threads that know their stacks, in 22 kinds of builds, and check each frame that has no mark (COUNT=n)
	@scripts/install-dependencies.sh stack-oracle || echo 'Some kinds of builds will not be run.'
	$(BOUNDED) Tests/Programs/stack-oracle.py --count $(COUNT) $(ORACLE)

.PHONY: script-tests
script-tests:
	Tests/Programs/mutations.py --check
	Tests/ScriptTests/other-c-library-tests.sh
	Tests/ScriptTests/check-layers-tests.py
	Tests/ScriptTests/check-documents-tests.py
	Tests/ScriptTests/bench-table-tests.py

# The example with a GLib loop is built first, in the folder of a sample that has the library already.
GLIB_EXAMPLE = if pkg-config --exists glib-2.0; then $(BUILD) --package-path Examples/glib-loop --product glib-loop \
	--scratch-path Tests/Samples/StallsInTests/.build; fi
# The soak mostly waits. Random inputs and races, which no clock judges, run beside it, and leave it the processors.
.PHONY: long-tests soak-tests random-tests
long-tests: install $(BUILT_TESTS)
	$(GLIB_EXAMPLE)
	$(MAKE) --no-print-directory random-tests & \
	$(MAKE) --no-print-directory soak-tests || failed=1; wait $$! || failed=1; [ -z "$${failed-}" ]
	STALLWATCH_STRESS_SECONDS=10 $(TESTS) --filter 'threads that hold locks lose nothing'
soak-tests:
	$(TESTS) --ignore-lock --no-parallel --filter '$(LONG_TESTS)'
random-tests:
	STALLWATCH_TEST_ROUNDS=3 STALLWATCH_FUZZED_NAMES=100000 nice -n 19 $(TESTS) --ignore-lock \
		--filter '$(RANDOM_TESTS)|random valid names'

# Under a sanitizer run the unit tests, the tests of the capture engine, and those of captures while a monitor or a test's own
# thread runs. These are left out, here and nowhere else:
# - Other tests: they wait for programs, which are several times slower then, and judge by the clock.
# - FuzzTests, ReporterLoadTests, randomWords...: a million rounds on one thread take ten times as long.
# - TaskReaderLiveTests: each reading searches the process's memory, of which a sanitizer has terabytes of its own.
# - Under ThreadSanitizer the stacks of all states, vfork(2) and signals: it delays signal handlers, keeps one pending signal of
#   each number, and replaces vfork(2) by fork(2).
SANITIZED := $(UNIT_TESTS)|^(CUnwindTests|ClockTests\.(MonitorLife|InterruptedCalls)Tests)
NOT_SANITIZED := FuzzTests|ReporterLoadTests|randomWordsNeverHaveAnOwner|TaskReaderLiveTests
# - Under AddressSanitizer aCaptureInterruptsNoWait and "a thread in uninterruptible sleep ...": it aligns frames, so the engine
#   cannot compute the frame pointer, and the read stack of a thread that may not be stopped is incomplete. And
#   damagedFiles...: it keeps freed memory, so a bound on memory means nothing.
NOT_UNDER_thread := whole in each state|a thread in uninterruptible sleep|every signal arrives|damagedReportsDoNotCrashTheTool
NOT_UNDER_address := aCaptureInterruptsNoWait|a thread in uninterruptible sleep|damagedFilesAreErrors
# Memory that libraries keep until the end, such as the argument parser's tables, is not a leak. MonitorLifeTests find leaks.
export ASAN_OPTIONS := detect_leaks=0
# One test is about a child of fork(2) that starts threads.
export TSAN_OPTIONS := die_after_fork=0 suppressions=$(CURDIR)/Tests/Support/thread-sanitizer.txt

.PHONY: sanitize
sanitize: sanitize-thread sanitize-address ## Run the tests under ThreadSanitizer and AddressSanitizer

.PHONY: sanitize-thread sanitize-address
sanitize-thread sanitize-address: sanitize-%:
	@scripts/install-dependencies.sh test
	$(BUILD) --build-tests --enable-all-traits --sanitize=$* --scratch-path .build-$*
	$(SWIFT) test --skip-build --enable-all-traits --disable-xctest --no-parallel --sanitize=$* --scratch-path .build-$* \
		--filter '$(SANITIZED)' --skip '$(NOT_SANITIZED)|$(NOT_UNDER_$*)'

# The tests need no trait. What the traits add is compiled against the other packages' modules that build-tests has made.
.PHONY: inert
inert: install $(BUILT_TESTS) ## Build and test the library as it is off Linux, and compare its public declarations with docs/api.md
	STALLWATCH_INERT=1 $(SWIFT) test --disable-xctest --scratch-path .build-inert --test-product StallWatchPackageTests
	scripts/check-api.py --inert

.PHONY: test-aarch64
test-aarch64: ## Run the C engine's tests, the scenarios, the unit tests and proofs on aarch64, in an emulated machine: 40 minutes (needs root)
	@scripts/install-dependencies.sh aarch64
	Tests/aarch64/run.sh
	Tests/aarch64/swift.sh $(SCENARIOS)

.PHONY: test-swift
test-swift: ## Build with the Swift of Debian unstable, and run the scenarios, proofs and the unit tests there: half an hour (needs root)
	@scripts/install-dependencies.sh slim
	Tests/Programs/debian-swift.sh $(SCENARIOS)

STRIPPED := .build/stripped-libraries

.PHONY: stripped-libraries
stripped-libraries: install ## Run the scenarios with Swift's libraries without symbols, as some distributions have them
	$(BUILD) --product stallwatch-scenarios
	rm -rf $(STRIPPED) && mkdir -p $(STRIPPED)
	cp "$$(dirname -- "$$(readlink -f -- "$$(command -v $(SWIFT))")")"/../lib/swift/linux/*.so $(STRIPPED)
	strip --strip-all $(STRIPPED)/*.so
	LD_LIBRARY_PATH=$(STRIPPED) "$$($(SWIFT) build --show-bin-path)/stallwatch-scenarios" --quiet --output $(STRIPPED)/stalls \
		--summary $(STRIPPED)/scenarios.json $(SCENARIOS) || true
	Tests/Programs/count-scenarios.py $(STRIPPED)/scenarios.json "stripped libraries"

.PHONY: slim
slim: ## Run the scenarios and proofs of a static release build in a slim root file system, without and with libdw (needs root)
	@scripts/install-dependencies.sh slim
	Tests/Programs/slim-root.sh $(SCENARIOS)

.PHONY: packages
packages: packages-debug packages-static ## Stall in calls into published packages, in a debug and a static release build, and check each report

# make test-all runs packages-light: the static build, which is how servers are deployed, of what compiles quickly.
.PHONY: packages-debug packages-static packages-light
packages-debug packages-static: export HEAVY_PACKAGES := 1
packages-debug packages-static packages-light: packages-%:
	$(BOUNDED) Tests/Programs/real-packages.sh $(if $(filter debug,$*),debug,release-static)

# In the folder that packages-light builds in, which has the same packages. With other jobs everything is compiled again.
.PHONY: cases
cases: install ## Build the programs of Tests/Samples/Cases, which once showed a fault
	$(BOUNDED) Tests/Samples/Cases/build.sh .build/cases
	$(BUILD) -c release --static-swift-stdlib --jobs $$((2 * $$(nproc))) --package-path Tests/Samples/Cases \
		--scratch-path Tests/Samples/RealPackages/.build-release-static

# One case: make run-cases CASES=pool
CASES :=

.PHONY: run-cases
run-cases: install $(if $(IN_STEP),,cases) ## Run the programs of Tests/Samples/Cases, and check that none shows its fault (CASES="NAME...")
	$(call built,stallwatch)
	$(BOUNDED) Tests/Programs/run-cases.py --programs Tests/Samples/RealPackages/.build-release-static/release \
		--libraries .build/cases --tool "$$($(SWIFT) build --show-bin-path)/stallwatch" $(CASES)

# More rounds, and busy loops beside them: make stalls-in-tests RUNS=20 BUSY=8
RUNS := 1
BUSY := 0

.PHONY: stalls-in-tests
stalls-in-tests: install ## Run a sample package with tests that stall, and check which fail and where (RUNS=20 BUSY=8 for load)
	$(BUILD) --package-path Tests/Samples/StallsInTests --build-tests
	$(call built,$(TOOL))
	$(BOUNDED) Tests/Programs/hangs-in-tests.py --tool "$$($(SWIFT) build --show-bin-path)/stallwatch"
	$(BOUNDED) Tests/Programs/stalls-in-tests.py --rounds $(RUNS) --busy $(BUSY) \
		--tool "$$($(SWIFT) build --show-bin-path)/stallwatch"

# Fewer stalls, and the shares of an earlier run: make precision COUNT=300 JUDGE="--against before.json"
JUDGE :=
PRECISION := .build/precision
STATIC := --enable-all-traits -c release --static-swift-stdlib --scratch-path .build-release-static

.PHONY: precision
precision: COUNT := 2000
precision: install ## Check each claim without a mark in the reports of 2,000 random stalls (COUNT=n), the scenarios and published packages
	rm -rf $(PRECISION) && mkdir -p $(PRECISION)
	Tests/Samples/Cases/build.sh .build/cases
	$(BUILD) --product stallwatch-scenarios --enable-all-traits
	$(BUILD) --product stallwatch-scenarios $(STATIC)
	strip --strip-all -o $(PRECISION)/stallwatch-scenarios .build-release-static/release/stallwatch-scenarios
	seed=0; for folder in .build/debug .build-release-static/release $(PRECISION); do seed=$$((seed + 1)); \
		"$$folder/stallwatch-scenarios" mix --count $$((($(COUNT) + 2) / 3)) --seed $$seed --libraries .build/cases \
		--output $(PRECISION)/mix-$$seed; done
	.build/debug/stallwatch-scenarios --quiet --output $(PRECISION)/scenarios --summary $(PRECISION)/scenarios/summary.json || true
	Tests/Programs/real-packages.sh release-static $(PRECISION)/packages || true
	Tests/Programs/precision.py --write $(PRECISION)/shares.json $(JUDGE) \
		$(PRECISION)/mix-1 $(PRECISION)/mix-2 $(PRECISION)/mix-3 $(PRECISION)/scenarios $(PRECISION)/packages

.PHONY: run-programs
run-programs: install ## Make a GTK program of Debian and a Python program stall under `stallwatch run`, and measure its delay
	@scripts/install-dependencies.sh run-programs
	for product in $(TOOL); do $(BUILD) -c release --product $$product || exit; done
	$(BOUNDED) Tests/Programs/run-programs.py --tool "$$($(SWIFT) build -c release --show-bin-path)/stallwatch"

FLEET_PROGRAMS := --tool .build/debug/stallwatch --scenarios .build/debug/stallwatch-scenarios

# make test has fewer reports and kills.
COLLECTED := 10000
AGENT_KILLS := 10

.PHONY: fleet-agents
fleet-agents: install-for-tests ## Send 10,000 reports with syslog-ng, which is killed ten times, and check that each arrives (COLLECTED=n)
	$(call built,stallwatch-scenarios)
	$(BOUNDED) Tests/Programs/agents.py --generator .build/debug/stallwatch-scenarios \
		--reports $(COLLECTED) --kills $(AGENT_KILLS)

# Fewer, as in make test: make fleet-queries QUERIED=5000 HISTORIES=3
QUERIED := 100000
HISTORIES := 20

.PHONY: fleet-queries
fleet-queries: install-for-tests ## Run the queries of Fleet/ in DuckDB and ClickHouse over 100,000 made-up reports (QUERIED=n)
	@scripts/install-python-packages.sh fleet || true
	$(call built,stallwatch stallwatch-scenarios)
	$(BOUNDED) Tests/Programs/fleet-queries.py $(FLEET_PROGRAMS) --reports $(QUERIED) --histories $(HISTORIES)

.PHONY: fleet-bench
fleet-bench: install ## Time stallwatch top, DuckDB and ClickHouse over a million made-up reports (QUERIED=n): 10 GB of disk
	@scripts/install-python-packages.sh fleet
	$(BUILD) -c release --product stallwatch
	$(BUILD) -c release --product stallwatch-scenarios
	programs="$$($(SWIFT) build -c release --show-bin-path)"; Tests/Programs/fleet-queries.py --benchmark \
		--tool "$$programs/stallwatch" --scenarios "$$programs/stallwatch-scenarios" \
		--reports $(if $(filter file,$(origin QUERIED)),1000000,$(QUERIED))

# Fewer rounds: make context-servers CONTEXT_ROUNDS=10
CONTEXT_ROUNDS := 100

.PHONY: context-servers
context-servers: install ## Block one of 100 concurrent requests of a Hummingbird and of a NIO server, and count the reports that name it
	Tests/Programs/context-servers.sh $(CONTEXT_ROUNDS)

.PHONY: guides
guides: ## Follow the guides to the letter in fresh folders, and time the first report: twenty minutes (needs root)
	@scripts/install-dependencies.sh slim
	Tests/Programs/follow-guides.py

.PHONY: builds
builds: install ## Run the scenarios in debug, release, static and stripped builds, and count the right reports of each
	Tests/Programs/scenario-builds.sh

.PHONY: bench
bench: install ## Measure what StallWatch costs beside the alternatives, for Benchmarks/RESULTS.md: 20 minutes on an idle machine
	$(BUILD) --package-path Benchmarks -c release
	{ $(SWIFT) package --package-path Benchmarks benchmark --format markdown --no-progress && \
		"$$($(SWIFT) build --package-path Benchmarks -c release --show-bin-path)/stallwatch-bench"; } | Benchmarks/table.py

.PHONY: overhead
overhead: install ## Compare the cost that `stallwatch doctor` says with the same program without a monitor: five minutes on a quiet machine
	for product in stallwatch stallwatch-test-host; do $(BUILD) -c release --product $$product || exit; done
	programs="$$($(SWIFT) build -c release --show-bin-path)"; \
		Tests/Programs/overhead.py --host "$$programs/stallwatch-test-host" --tool "$$programs/stallwatch"

STALLBENCH := Benchmarks/StallBench/stallbench.py .build/stallbench
# Another order of the cases, other tools: make stallbench MORE="--seed 2 --tools none,stallwatch,gdb"
MORE :=
# Checkouts of projects whose libraries are measured, too: make stallbench SENTRY_NATIVE=PATH SWIFT_PROFILE_RECORDER=PATH
SENTRY_NATIVE :=
SWIFT_PROFILE_RECORDER :=
CHECKOUTS = $(if $(SENTRY_NATIVE),--sentry-native '$(SENTRY_NATIVE)') \
	$(if $(SWIFT_PROFILE_RECORDER),--swift-profile-recorder '$(SWIFT_PROFILE_RECORDER)')

.PHONY: stallbench
stallbench: install ## Run stall monitors on labelled stalls and write the table of docs/StallBench.md: 20 minutes on a quiet machine
	@scripts/install-dependencies.sh test
	for product in $(TOOL); do $(BUILD) -c release --product $$product || exit; done
	$(BUILD) -c release --package-path Benchmarks/StallBench/plugins/stallwatch
	Benchmarks/StallBench/driver/build.sh .build/stallbench $(CHECKOUTS)
	$(STALLBENCH) --stallwatch "$$($(SWIFT) build -c release --show-bin-path)/stallwatch" --stallwatch-plugin \
		Benchmarks/StallBench/plugins/stallwatch/.build/release/libstallbench-stallwatch.so \
		--results .build/stallbench/results.json --page docs/StallBench.md $(CHECKOUTS) $(MORE)

# Five cases, and the tools that make test installs: that the benchmark itself works, also beside other work.
.PHONY: stallbench-short
stallbench-short: install
	$(call built,$(TOOL))
	Benchmarks/StallBench/driver/build.sh .build/stallbench --only-c
	$(STALLBENCH) --stallwatch "$$($(SWIFT) build --show-bin-path)/stallwatch" --sets glib-a --runs 1 --expect stallwatch \
		--tools none,stallwatch,gdb,seastar,glommio --cases cpu,mutex,pipe,nanosleep,glib-a-idle --first-pause 4000

# The output directory of the documentation.
DOCS := .build/documentation

.PHONY: docs
docs: install ## Build the documentation; a warning is an error
	$(BUILD) --target StallWatch
	scripts/build-documentation.sh "$$($(SWIFT) build --show-bin-path)" $(DOCS)

.PHONY: lint
lint: ## Check formats, snippets, documents and documentation comments
	$(SWIFT) format lint --strict --recursive --parallel $(SWIFT_SOURCES)
	scripts/check-text.sh
	scripts/check-snippets.py
	scripts/check-documents.py
	scripts/check-layers.py
	@env -u CI scripts/check-api.py  # make test compares it after its build, also in CI
	@scripts/install-dependencies.sh lint || true
	@if command -v $(CLANG_FORMAT) >/dev/null; then $(CLANG_FORMAT) --dry-run -Werror $(C_SOURCES); \
	else echo 'The format of the C files is NOT checked: there is no $(CLANG_FORMAT).'; [ -z "$${CI-}" ]; fi

.PHONY: format
format: ## Format all sources
	$(SWIFT) format --in-place --recursive --parallel $(SWIFT_SOURCES)
	@scripts/install-dependencies.sh lint
	$(CLANG_FORMAT) -i $(C_SOURCES)

.PHONY: install
install:
	@scripts/install-dependencies.sh build

# A test of which something is missing says so, and is not run.
.PHONY: install-for-tests
install-for-tests: install
	@scripts/install-dependencies.sh test || echo 'Some tests will not be run.'

.PHONY: install-python
install-python:
	@scripts/install-python-packages.sh || echo 'Some tests will not be run.'
