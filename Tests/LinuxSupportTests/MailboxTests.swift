import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport

@Suite struct MailboxTests {
    @Test func `a mailbox is idle once its reader has come back for more`() {
        let mailbox = Mailbox<Int>()
        #expect(mailbox.isIdle)
        mailbox.put(1)
        #expect(!mailbox.isIdle)
        #expect(mailbox.next() == 1)
        // The reader still works on the item.
        #expect(!mailbox.isIdle)
        mailbox.close()
        #expect(mailbox.next() == nil)
        #expect(mailbox.isIdle && mailbox.isDrained)
    }

    @Test func `an item replaces an older one or drops another`() {
        let mailbox = Mailbox<Int>()
        for number in [11, 2, 3] { #expect(mailbox.put(number, limit: 3) == nil) }
        #expect(mailbox.put(21, limit: 3, replacing: { $0 % 10 == 1 }) == nil)
        #expect(mailbox.put(4, limit: 3, dropping: { $0.firstIndex { $0 < 10 } }) == 2)
        #expect(mailbox.put(5, limit: 3) == 21)
        mailbox.close()
        #expect(mailbox.put(6) == 6)
        #expect([mailbox.next(), mailbox.next(), mailbox.next(), mailbox.next()] == [3, 4, 5, nil])
    }

    @Test func `a reader waits until an item, a deadline or the end`() throws {
        let mailbox = Mailbox<Int>()
        #expect(mailbox.next(until: 0) == nil)
        let begun = monotonicNow()
        #expect(mailbox.next(until: begun + 20_000_000) == nil)
        #expect(monotonicNow() >= begun + 20_000_000)
        let sum = Atomic<Int>(0)
        let reader = try WorkerThread(name: "reader") {
            while let number = mailbox.next() { sum.add(number, ordering: .relaxed) }
        }
        for number in 1...1_000 { mailbox.put(number) }
        mailbox.close()
        reader.join()
        #expect(sum.load(ordering: .relaxed) == 500_500)
        mailbox.waitForClose(until: .max)
    }

    @Test func `a worker runs one thread at a time`() throws {
        let worker = Worker(name: "worker")
        let gate = Semaphore()
        let runs = Atomic<Int>(0)
        let body = { @Sendable in
            runs.add(1, ordering: .relaxed)
            gate.wait()
        }
        #expect(try worker.start(body))
        #expect(try !worker.start(body))
        gate.post()
        #expect(eventually { (try? worker.start(body)) == true })
        gate.post()
        worker.finish(until: .max)
        #expect(runs.load(ordering: .relaxed) == 2)
    }

    @Test func `jobs run one after the other on one thread`() {
        let jobs = JobThread(name: "jobs")
        let gate = Semaphore()
        let runs = Mutex<[(job: Int, thread: Int32?)]>([])
        let note = { @Sendable (job: Int) in runs.withLock { $0.append((job, ownThread())) } }
        jobs.add {
            gate.wait()
            note(1)
            jobs.add { note(3) }
        }
        jobs.add { note(2) }
        gate.post()
        #expect(eventually { runs.withLock { $0.count } == 3 })
        #expect(runs.withLock { $0.map(\.job) } == [1, 2, 3])
        #expect(Set(runs.withLock { $0.map(\.thread) }).count == 1)
        // Whether or not that thread has ended.
        jobs.add { note(4) }
        #expect(eventually { runs.withLock { $0.count } == 4 })
    }

    @Test func `a job that never returns delays the others for its patience only`() {
        let jobs = JobThread(name: "jobs", patience: 1_000_000)
        let (hasBegun, gate) = (Semaphore(), Semaphore())
        let runs = Mutex<[Int]>([])
        jobs.add {
            hasBegun.post()
            gate.wait()
            runs.withLock { $0.append(0) }
        }
        hasBegun.wait()
        jobs.add { runs.withLock { $0.append(1) } }
        #expect(
            eventually {
                jobs.relieve()
                return runs.withLock { $0.contains(1) }
            })
        jobs.add { runs.withLock { $0.append(2) } }
        #expect(eventually { runs.withLock { $0.contains(2) } })
        #expect(runs.withLock { !$0.contains(0) })
        gate.post()
        #expect(eventually { runs.withLock { $0.contains(0) } })
        // The thread that was left takes no job any more.
        jobs.add { runs.withLock { $0.append(3) } }
        #expect(eventually { runs.withLock { $0.count { $0 == 3 } } == 1 })
    }

    @Test func `a value is prepared once`() {
        let finds = Atomic<Int>(0)
        let prepared = Prepared { finds.add(1, ordering: .relaxed).newValue }
        #expect(prepared.value == nil)
        prepared.begin()
        prepared.begin()
        #expect(eventually { prepared.value != nil })
        #expect(prepared.value == 1 && finds.load(ordering: .relaxed) == 1)
    }

    /// A child of fork(2) has no thread that finds the value.
    @Test func `a value is prepared anew in another process`() {
        let process = Atomic<UInt32>(1)
        let finds = Atomic<Int>(0)
        let mayFind = Semaphore()
        let prepared = Prepared<Int>(on: JobThread(name: "prepared"), in: { process.load(ordering: .relaxed) }) {
            mayFind.wait()
            return finds.add(1, ordering: .relaxed).newValue
        }
        prepared.begin()
        prepared.begin()
        process.store(2, ordering: .relaxed)
        prepared.begin()
        mayFind.post()
        mayFind.post()
        #expect(eventually { prepared.value == 2 })
        #expect(finds.load(ordering: .relaxed) == 2)
    }

    @Test func `a deadline thread gets advice of its own`() {
        #expect(WorkerThread.remedy(policy: 0).contains("ulimit -u"))
        #expect(WorkerThread.remedy(policy: WorkerThread.deadlinePolicy).contains("SCHED_DEADLINE"))
    }

    @Test func `no call waits for a thread that was abandoned`() throws {
        let worker = Worker(name: "worker")
        let (isAbandoned, gate) = (Semaphore(), Semaphore())
        defer { gate.post() }
        try worker.start {
            worker.abandonIfCurrent()
            isAbandoned.post()
            gate.wait()
        }
        isAbandoned.wait()
        worker.finish(until: .max)
    }
}
