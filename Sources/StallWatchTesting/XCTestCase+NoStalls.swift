#if canImport(XCTest)
    import StallReports
    public import StallWatch
    import Testing
    public import XCTest

    extension XCTestCase {
        /// Runs blocking code, and fails the test if it holds its thread for the given time or longer.
        ///
        /// The time in which the machine kept the code from running does not count. The failure is at the line of the
        /// function to inspect first, and its text has the stacks.
        ///
        /// - Parameters:
        ///   - threshold: The shortest duration that is a failure, 10 ms or more.
        ///   - baseline: The path of a file with known stalls; `nil` for the one that `STALLWATCH_BASELINE` names.
        ///   - file: The file of a failure whose function is not in the package.
        ///   - line: The line of such a failure.
        ///   - body: The code.
        /// - Returns: The result of `body`.
        /// - Throws: The errors of `body`.
        public func assertNoStalls<Success>(
            over threshold: Duration = .milliseconds(100), baseline: String? = nil, file: StaticString = #filePath,
            line: UInt = #line, _ body: () throws -> Success
        ) rethrows -> Success {
            let place = SourceLocation(file, line)
            let check = BlockingCheck(
                StallBudget(fail: threshold), baseline: baselineOrFailure(baseline, at: place), place)
            do throws(StallWatchError) {
                try SharedMonitor.shared.enter(check.scope)
            } catch {
                fail("stalls cannot be watched here: \(error)", at: place)
                return try body()
            }
            defer { for finding in check.finish() { fail(for: finding, elsewhere: place) } }
            return try check.run(body)
        }

        /// Runs async code, and fails the test if a loop stalls meanwhile for the given time or longer.
        ///
        /// XCTest runs one test at a time, so the stalls are those of this test. The time in which the machine kept the
        /// code from running does not count.
        ///
        /// - Parameters:
        ///   - threshold: The shortest stall that is a failure, 10 ms or more.
        ///   - loops: The loops to watch: the main actor's by default.
        ///   - baseline: The path of a file with known stalls; `nil` for the one that `STALLWATCH_BASELINE` names.
        ///   - isolation: The actor that runs the code: the caller's.
        ///   - function: The function that contains the code.
        ///   - file: The file of a failure whose function is not in the package.
        ///   - line: The line of such a failure.
        ///   - body: The code.
        /// - Returns: The result of `body`.
        /// - Throws: The errors of `body`.
        public func assertNoStalls<Success>(
            over threshold: Duration = .milliseconds(100), on loops: [WatchedLoop] = [.main], baseline: String? = nil,
            isolation: isolated (any Actor)? = #isolation, function: String = #function,
            file: StaticString = #filePath, line: UInt = #line, _ body: () async throws -> Success
        ) async rethrows -> Success {
            let place = SourceLocation(file, line)
            let scope = StallScope(
                loops: loops, budget: StallBudget(fail: threshold),
                function: WatchedFunction(name: function, file: place.filePath), location: place,
                baseline: baselineOrFailure(baseline, at: place)
            )
            do throws(StallWatchError) {
                try await SharedMonitor.shared.enterFromTask(scope)
            } catch {
                fail("stalls cannot be watched here: \(error)", at: place)
                return try await body()
            }
            let success: Success
            do {
                success = try await StallScope.$current.withValue(scope, operation: body)
            } catch {
                for finding in await SharedMonitor.shared.leave(scope) { fail(for: finding, elsewhere: place) }
                throw error
            }
            for finding in await SharedMonitor.shared.leave(scope) { fail(for: finding, elsewhere: place) }
            return success
        }

        private func baselineOrFailure(_ path: String?, at place: SourceLocation) -> StallBaseline? {
            do throws(StallWatchError) {
                return try BaselineFiles.baseline(at: path)
            } catch {
                fail(error.description, at: place)
                return nil
            }
        }

        private func fail(for finding: StallFinding, elsewhere place: SourceLocation) {
            guard !finding.isExcused, finding.severity == .error else { return }
            fail("\(finding.sentence)\n\(StallText(finding.report).text)", at: finding.report.culpritLocation ?? place)
        }

        private func fail(_ text: String, at place: SourceLocation) {
            recordFailure(withDescription: text, inFile: place.filePath, atLine: place.line, expected: true)
        }
    }

    extension SourceLocation {
        fileprivate init(_ file: StaticString, _ line: UInt) {
            self.init(fileID: "XCTest/test", filePath: "\(file)", line: Int(line), column: 1)
        }
    }
#endif
