// case-app MODE DIR [arguments]
import Foundation
import Dispatch
import Glibc
import StallWatch
import Logging

setvbuf(stdout, nil, _IOLBF, 0)
let args = CommandLine.arguments
let mode = args.count > 1 ? args[1] : "plain"
let dir = args.count > 2 ? args[2] : "stalls"
func arg(_ i: Int, _ d: Int) -> Int { args.count > i ? Int(args[i]) ?? d : d }
func now() -> Double {
    var t = timespec(); clock_gettime(CLOCK_MONOTONIC, &t); return Double(t.tv_sec) + Double(t.tv_nsec) / 1e9
}
func ms(_ s: Double) -> String { String(format: "%.1f ms", s * 1e3) }
func rss() -> Int {
    let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
    return (Int(text.split(separator: " ").dropFirst().first ?? "0") ?? 0) * 4096
}
func fds() -> Int { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? -1 }
func threads() -> Int { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count) ?? -1 }

@inline(never) func sleepHere(_ m: UInt32) { usleep(m * 1000) }
@inline(never) func burn(_ m: Double) { let end = now() + m / 1e3; while now() < end {} }

func config(_ threshold: Int = 100) -> StallMonitor.Configuration {
    var c = StallMonitor.Configuration(threshold: .milliseconds(threshold), outputs: [.directory(dir)])
    c.repeats.reportsEveryRepeat = true
    return c
}
func statsLine(_ m: StallMonitor) -> String {
    let s = m.statistics
    return
        "stalls \(s.stalls) suppressed \(s.suppressed) failedWrites \(s.failedWrites) lost \(s.reportsLost) recovered \(s.reportsRecovered) err \(s.lastWriteError.map { "\($0)" } ?? "-")"
}
// with a timer, so that the mode is not empty
func runFor(_ s: Double) {
    let keep = Timer.scheduledTimer(withTimeInterval: 3600, repeats: true) { _ in }
    RunLoop.main.run(until: Date(timeIntervalSinceNow: s)); keep.invalidate()
}
// the CPU time of each thread by its name, in ms
func threadTimes() -> [String: Double] {
    var all: [String: Double] = [:]
    for t in (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? [] {
        guard let c = try? String(contentsOfFile: "/proc/self/task/\(t)/comm", encoding: .utf8),
            let s = try? String(contentsOfFile: "/proc/self/task/\(t)/schedstat", encoding: .utf8)
        else { continue }
        all[c.trimmingCharacters(in: .newlines), default: 0] += (Double(s.split(separator: " ")[0]) ?? 0) / 1e6
    }
    return all
}
func difference(_ a: [String: Double], _ b: [String: Double]) -> String {
    b.map { ($0.key, $0.value - (a[$0.key] ?? 0)) }.filter { $0.1 > 0.5 }.sorted { $0.1 > $1.1 }.map {
        "\($0.0) \(Int($0.1)) ms"
    }.joined(separator: ", ")
}
func onMain(after s: Double, _ body: @escaping () -> Void) {
    _ = Timer.scheduledTimer(withTimeInterval: s, repeats: false) { _ in body() }
}

@inline(never) func waitForTheOtherProcess(_ m: UnsafeMutablePointer<pthread_mutex_t>) {
    let t = now(); pthread_mutex_lock(m); pthread_mutex_unlock(m); print("waited \(ms(now() - t))")
}
final class Kept: @unchecked Sendable { var all: [UnsafeContinuation<Void, Never>] = []; let lock = NSLock() }
let kept = Kept()
@inline(never) func withCheckedContinuationOrTimeout(seconds: Double) async {
    await withUnsafeContinuation { (c: UnsafeContinuation<Void, Never>) in
        kept.lock.lock(); kept.all.append(c); kept.lock.unlock()
        DispatchQueue.global().asyncAfter(deadline: .now() + seconds) {
            kept.lock.lock(); let c = kept.all.removeFirst(); kept.lock.unlock(); c.resume()
        }
    }
}

switch mode {
case "plain":
    // N stalls of MS milliseconds on the main run loop
    let monitor = try StallMonitor(config())
    try monitor.watch(.main); try monitor.start()
    let n = arg(3, 2), m = arg(4, 300)
    for i in 0..<n { onMain(after: 0.3 + Double(i) * (Double(m) / 1000 + 0.3)) { sleepHere(UInt32(m)) } }
    runFor(0.5 + Double(n) * (Double(m) / 1000 + 0.3))
    monitor.stop(); print(statsLine(monitor))
case "bare":
    // the same without a monitor
    let n = arg(3, 2), m = arg(4, 300)
    for i in 0..<n { onMain(after: 0.3 + Double(i) * (Double(m) / 1000 + 0.3)) { sleepHere(UInt32(m)) } }
    runFor(0.5 + Double(n) * (Double(m) / 1000 + 0.3)); print("bare: done")
case "defaultstack":
    // the app's threads have stacks of KB by default
    var a = pthread_attr_t(); pthread_attr_init(&a); pthread_attr_setstacksize(&a, arg(3, 128) << 10)
    typealias SetDefault = @convention(c) (UnsafePointer<pthread_attr_t>) -> Int32
    print(
        "pthread_setattr_default_np", unsafeBitCast(dlsym(nil, "pthread_setattr_default_np"), to: SetDefault.self)(&a))
    let monitor = try StallMonitor(config())
    try monitor.watch(.main); try monitor.start()
    for i in 0..<3 { onMain(after: 0.3 + Double(i) * 0.6) { sleepHere(300) } }
    runFor(2.5)
    monitor.stop(); print(statsLine(monitor))
case "closeall":
    // a daemon closes all descriptors and opens files of its own, which get the numbers
    var c = config(); c.control = .socket(directory: dir);
    c.health = .init(path: dir + "/health", interval: .milliseconds(200))
    let monitor = try StallMonitor(c)
    try monitor.watch(.main); try monitor.start()
    onMain(after: 0.5) { sleepHere(200) }
    var pipes: [Int32] = []
    onMain(after: 1) {
        closefrom(3)
        for _ in 0..<60 { var e: [Int32] = [0, 0]; pipe(&e); pipes += e; var b: UInt8 = 7; write(e[1], &b, 1) }
    }
    onMain(after: 1.5) { sleepHere(300) }
    onMain(after: 2.2) { sleepHere(300) }
    runFor(3)
    monitor.stop()
    var bad = 0
    for i in stride(from: 0, to: pipes.count, by: 2) {
        var b: UInt8 = 0; if fcntl(pipes[i], F_GETFL) < 0 || fcntl(pipes[i + 1], F_GETFL) < 0 { bad += 1; continue };
        var p = pollfd(fd: pipes[i], events: Int16(POLLIN), revents: 0); if poll(&p, 1, 0) != 1 { bad += 1; continue };
        if read(pipes[i], &b, 1) != 1 || b != 7 { bad += 1 }
    }
    print("pipes damaged: \(bad) of \(pipes.count / 2)"); print(statsLine(monitor))
case "cpu":
    let monitor = try StallMonitor(config())
    try monitor.watch(.main); try monitor.start()
    let n = arg(3, 2), m = arg(4, 300)
    for i in 0..<n { onMain(after: 0.3 + Double(i) * (Double(m) / 1000 + 0.3)) { burn(Double(m)) } }
    runFor(0.5 + Double(n) * (Double(m) / 1000 + 0.3))
    monitor.stop(); print(statsLine(monitor))
case "stopbig":
    // stop() on the main thread right after a stall, with MB of resident memory
    let mb = arg(3, 3000)
    let p = UnsafeMutablePointer<UInt64>.allocate(capacity: mb << 17)
    for i in 0..<(mb << 17) { p[i] = UInt64(truncatingIfNeeded: i) &* 0x9e3779b97f4a7c15 }
    for _ in 0..<20 { Task { @MainActor in try? await Task.sleep(for: .milliseconds(10)) } }
    let monitor = try StallMonitor(config())
    try monitor.watch(.main); try monitor.start()
    onMain(after: 1) {
        sleepHere(150)
        let t = now(); monitor.stop();
        print("stop() took \(ms(now() - t)) on the main thread, resident \(rss() >> 20) MB")
        print(statsLine(monitor)); exit(0)
    }
    runFor(20)
case "stopjob":
    // stop() on the main thread while a client of the control socket has asked for WHAT (stacks, tasks), with MB of resident memory
    let mb = arg(3, 3000)
    let p = UnsafeMutablePointer<UInt64>.allocate(capacity: mb << 17)
    for i in 0..<(mb << 17) { p[i] = UInt64(truncatingIfNeeded: i) &* 0x9e3779b97f4a7c15 }
    for _ in 0..<20 { Task { try? await Task.sleep(for: .seconds(60)) } }
    var c = config(); c.control = .socket(directory: dir)
    let monitor = try StallMonitor(c)
    try monitor.watch(.main); try monitor.start()
    onMain(after: 1) {
        let t = Process(); t.executableURL = URL(fileURLWithPath: args[5]); t.arguments = [args[4], "\(getpid())"]
        t.standardOutput = FileHandle.nullDevice; t.standardError = FileHandle.nullDevice
        try? t.run()
    }
    onMain(after: 1.25) {
        let t = now(); monitor.stop();
        print("stop() took \(ms(now() - t)) on the main thread, resident \(rss() >> 20) MB")
        exit(0)
    }
    runFor(20)
case "busyturns":
    // a loop with turns of 1 ms and a stall of MS every second, for SECONDS; how many were counted, and what was suppressed
    let threshold = arg(3, 50), seconds = Double(arg(4, 10)), m = Double(arg(5, 0))
    let monitor = try StallMonitor(config(threshold))
    let probe = LoopProbe(label: "p")
    try monitor.watch(.probe(probe)); try monitor.start()
    let end = now() + seconds; var made = 0, over = 0, next = now() + 1
    while now() < end {
        let t = now()
        probe.beginTurn()
        if m > 0, t > next { next = t + 1; made += 1; burn(m) } else { burn(1) }
        probe.endTurn()
        if now() - t >= Double(threshold) / 1e3 { over += 1 }
        usleep(500)
    }
    monitor.stop(); print("stalls made \(made), turns over the threshold \(over): " + statsLine(monitor))
    var a = timespec(), b = timespec(); clock_gettime(CLOCK_MONOTONIC, &a); clock_gettime(CLOCK_BOOTTIME, &b)
    print("boottime - monotonic: \((b.tv_sec - a.tv_sec) * 1_000_000_000 + b.tv_nsec - a.tv_nsec) ns")
case "pipes":
    // N loops wait for pipes of their own for 2.5 s; 0.5 s later another loop stalls for 300 ms, three times
    let n = arg(3, 40)
    let monitor = try StallMonitor(config())
    try monitor.start()
    var ends: [Int32] = []
    for i in 0..<n {
        let probe = LoopProbe(label: "pipe\(i)"); try monitor.watch(.probe(probe))
        var e: [Int32] = [0, 0]; pipe(&e); ends += e
        let r = e[0]
        Thread.detachNewThread {
            usleep(500_000); probe.beginTurn(); var b: UInt8 = 0; _ = read(r, &b, 1); probe.endTurn()
        }
    }
    let victim = LoopProbe(label: "victim"); try monitor.watch(.probe(victim))
    Thread.detachNewThread {
        usleep(900_000); for _ in 0..<3 { victim.beginTurn(); sleepHere(300); victim.endTurn(); usleep(100_000) }
    }
    sleep(3)
    for i in 0..<n { var b: UInt8 = 1; write(ends[2 * i + 1], &b, 1) }
    sleep(1)
    let t = now(); monitor.stop(); print("stop \(ms(now() - t)); " + statsLine(monitor))
    print(monitor.statistics.loops.filter { $0.label == "victim" }.map { "victim: \($0.stalls) of 3 stalls" })
case "rest":
    let queue = DispatchQueue(label: "q")
    let monitor = try StallMonitor(config())
    try monitor.watch(.queue(queue, label: "q")); try monitor.start()
    Thread.detachNewThread { for _ in 0..<3 { usleep(1_300_000); queue.sync { sleepHere(400) } } }
    sleep(7); monitor.stop(); print("3 made: " + statsLine(monitor))
case "redactmain":
    // the redaction asks the main queue for something; the program stops the monitor on the main thread after a stall
    var c = config()
    c.privacy.redact = { report in DispatchQueue.main.sync { report.metadata["user"] = "someone" } }
    let monitor = try StallMonitor(c)
    try monitor.watch(.main); try monitor.start()
    onMain(after: 0.5) {
        sleepHere(300); let t = now(); monitor.stop(); print("stop took \(ms(now() - t))"); exit(0)
    }
    runFor(10)
case "threads":
    // N threads that wait; every report has all threads
    let n = arg(3, 5000)
    let gate = DispatchSemaphore(value: 0)
    for _ in 0..<n { let t = Thread { gate.wait() }; t.stackSize = 128 << 10; t.start() }
    var c = config(); c.detection.capturesAllThreads = true
    let monitor = try StallMonitor(c)
    try monitor.watch(.main); try monitor.start()
    let victim = LoopProbe(label: "victim"); try monitor.watch(.probe(victim))
    Thread.detachNewThread {
        usleep(450_000); for _ in 0..<3 { victim.beginTurn(); sleepHere(200); victim.endTurn(); usleep(50_000) }
    }
    onMain(after: 0.3) { sleepHere(1200) }
    runFor(2.5)
    let a = threadTimes(); runFor(3); print("idle 3 s: \(difference(a, threadTimes()))")
    monitor.stop(); print(statsLine(monitor)); print(monitor.statistics.loops.map { "\($0.label): \($0.stalls)" });
    exit(0)
case "chdir":
    // a program that changes its directory after the monitor's start, as daemons do; DIR is relative
    var c = config(); c.outputs += [.ndjson(path: "lines.ndjson"), .statistics("statistics.json")]
    let monitor = try StallMonitor(c)
    try monitor.watch(.main); try monitor.start()
    onMain(after: 0.3) { sleepHere(300) }
    if args.count > 4 {
        onMain(after: 1) {
            sleepHere(200); _ = FileManager.default.changeCurrentDirectoryPath(args[3]); sleepHere(200)
        }
    } else {
        onMain(after: 1) { _ = FileManager.default.changeCurrentDirectoryPath(args[3]) };
        onMain(after: 1.2) { sleepHere(300) }
    }
    runFor(2.5); monitor.stop(); print(statsLine(monitor))
case "exitstall":
    // exit(0) inside a stalled turn after MS
    let monitor = try StallMonitor(config(50))
    try monitor.watch(.main); try monitor.start()
    onMain(after: 0.05) {
        burn(Double(arg(3, 60))); exit(0)
    }
    runFor(3)
case "startstop":
    let n = arg(3, 200)
    let (f0, t0) = (fds(), threads()); var r0 = 0
    for i in 0..<n {
        let monitor = try StallMonitor(config())
        try monitor.watch(.main); try monitor.start()
        monitor.stop()
        if i == 20 { r0 = rss() }
    }
    print("fds \(f0) -> \(fds()), threads \(t0) -> \(threads()), rss \(r0 >> 10) -> \(rss() >> 10) KiB")
case "race":
    // start, stop, watch, end of a watch, statistics, health, capabilities from many threads at once
    let n = arg(3, 100)
    for i in 0..<n {
        let monitor = try StallMonitor(config())
        let loop = try monitor.watch(.probe(LoopProbe(label: "stopped")))
        DispatchQueue.concurrentPerform(iterations: 8) { k in
            switch k {
            case 0: try? monitor.start()
            case 1: _ = try? monitor.watch(.main)
            case 2: monitor.stop()
            case 3: loop.stop()
            case 4: _ = monitor.statistics
            case 5: _ = monitor.checkHealth()
            case 6: try? loop.setThreshold(.milliseconds(50))
            default: _ = try? monitor.watch(.probe(LoopProbe(label: "p\(i)")))
            }
        }
        monitor.stop()
    }
    print("done \(n), fds \(fds()), threads \(threads())")
case "probes":
    // add N probes one by one after the start
    let n = arg(3, 1000)
    let monitor = try StallMonitor(config(250))
    try monitor.watch(.main); try monitor.start()
    var probes: [LoopProbe] = []
    var worst = 0.0
    let t = now()
    for i in 0..<n {
        let p = LoopProbe(label: "p\(i)"); let a = now()
        try monitor.watch(.probe(p)); worst = max(worst, now() - a); probes.append(p)
    }
    var u0 = rusage(); getrusage(__rusage_who_t(0), &u0)
    print(
        "watch of \(n) took \(ms(now() - t)), worst \(ms(worst)); cpu so far \(u0.ru_utime.tv_sec).\(u0.ru_utime.tv_usec / 1000)"
    )
    let t1 = now(); let a0 = threadTimes()
    runFor(5)
    print("idle \(ms(now() - t1)): \(difference(a0, threadTimes()))"); let b0 = threadTimes(), b1 = now()
    runFor(Double(arg(4, 5)))
    print("idle again \(ms(now() - b1)): \(difference(b0, threadTimes()))"); let a1 = threadTimes()
    let c1 = clock()
    var turns = 0; let end = now() + 5
    while now() < end { for p in probes { p.beginTurn(); p.endTurn(); turns += 1 } }
    print(
        "busy 5 s: \(turns) turns, cpu of all \(Double(clock() - c1) / 1e6 * 1000) ms: \(difference(a1, threadTimes()))"
    )
    let c2 = clock(); let s2 = now()
    probes[0].beginTurn(); sleepHere(600); probes[0].endTurn()
    print("stall of p0 ends, cpu \(Double(clock() - c2) / 1e6 * 1000) ms"); _ = s2; _ = t1
    monitor.stop(); print(statsLine(monitor))
case "queues":
    let n = arg(3, 1000)
    let monitor = try StallMonitor(config(250))
    try monitor.start()
    var queues: [DispatchQueue] = []
    let t = now()
    for i in 0..<n {
        let q = DispatchQueue(label: "q\(i)"); try monitor.watch(.queue(q, label: "q\(i)")); queues.append(q)
    }
    print("watch of \(n) queues took \(ms(now() - t)) threads \(threads()) fds \(fds())")
    runFor(2); let c0 = clock(); let a0 = threadTimes(); let t1 = now(); runFor(5)
    print(
        "idle \(ms(now() - t1)): cpu \(Double(clock() - c0) / 1e6 * 1000) ms, threads \(threads()): \(difference(a0, threadTimes()))"
    )
    queues[0].sync { sleepHere(700) }
    runFor(0.5)
    monitor.stop(); print(statsLine(monitor))
case "pshared":
    // waits on the main thread for the process-shared mutex in FILE, which another process (pidns.c) has locked
    let fd = open(args[3], O_RDWR)
    guard fd >= 0, let base = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), base != MAP_FAILED else {
        fatalError("mmap")
    }
    let mutex = base.assumingMemoryBound(to: pthread_mutex_t.self)
    let monitor = try StallMonitor(config())
    try monitor.watch(.main); try monitor.start()
    print("waiter pid \(getpid())")
    onMain(after: 0.3) { waitForTheOtherProcess(mutex) }
    runFor(Double(arg(4, 3)))
    monitor.stop(); print(statsLine(monitor))
case "timed":
    // two threads wait for each other's mutex, one of them with a time limit: no deadlock, as it goes on after 400 ms
    let a = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1),
        b = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    pthread_mutex_init(a, nil); pthread_mutex_init(b, nil)
    let monitor = try StallMonitor(config())
    try monitor.watch(.main); try monitor.start()
    nonisolated(unsafe) let (a2, b2) = (a, b)
    onMain(after: 0.3) {
        pthread_mutex_lock(a2)
        Thread.detachNewThread {
            pthread_mutex_lock(b2); usleep(20_000)
            var t = timespec(); clock_gettime(CLOCK_REALTIME, &t); t.tv_nsec += 400_000_000
            if t.tv_nsec >= 1_000_000_000 { t.tv_sec += 1; t.tv_nsec -= 1_000_000_000 }
            print("timedlock", pthread_mutex_timedlock(a2, &t)); pthread_mutex_unlock(b2)
        }
        usleep(10_000); pthread_mutex_lock(b2); pthread_mutex_unlock(b2); pthread_mutex_unlock(a2)
    }
    runFor(2)
    monitor.stop(); print(statsLine(monitor))
case "fork":
    // children of a process with a monitor make one of their own
    let n = arg(3, 100)
    let monitor = try StallMonitor(config())
    try monitor.watch(.main); try monitor.start()
    for _ in 0..<3 {
        Thread.detachNewThread { while true { let m = try? StallMonitor(config()); try? m?.start(); m?.stop() } }
    }
    var bad: [Int32: Int] = [:]; var hung = 0
    typealias Fork = @convention(c) () -> pid_t
    let doFork = unsafeBitCast(dlsym(nil, "fork"), to: Fork.self)
    for _ in 0..<n {
        usleep(UInt32.random(in: 0..<3000))
        let pid = doFork()
        if pid == 0 {
            alarm(10)
            do { let m = try StallMonitor(config()); try m.start(); m.stop(); _exit(0) } catch { _exit(3) }
        }
        var status: Int32 = 0
        waitpid(pid, &status, 0)
        if status != 0 { bad[status, default: 0] += 1; if status & 0x7f == SIGALRM { hung += 1 } }
    }
    print("children \(n), bad statuses \(bad), hung \(hung)"); exit(0)
case "ops":
    // an operation that awaits an unsafe continuation in a function whose name has withCheckedContinuation in it
    let monitor = try StallMonitor(config())
    try monitor.start()
    Task.detached {
        await monitor.withLimit(.milliseconds(200), "kept") {
            await withCheckedContinuationOrTimeout(seconds: Double(arg(3, 6)))
        }
        print("the operation has ended: it was resumed")
        monitor.stop(); print(statsLine(monitor)); exit(0)
    }
    runFor(30)
case "hold":
    // keeps running; a stall of MS each second on the main loop, with a control socket
    var c = config(); c.control = .socket(directory: dir);
    c.outputs.append(.log(Logger(label: "case-app") { StreamLogHandler.standardError(label: $0) }))
    let monitor = try StallMonitor(c)
    try monitor.watch(.main); try monitor.start()
    print("pid \(getpid()) started")
    let m = arg(3, 300)
    _ = Timer.scheduledTimer(withTimeInterval: 1, repeats: true) { _ in if m > 0 { sleepHere(UInt32(m)) } }
    runFor(Double(arg(4, 10)))
    monitor.stop(); print(statsLine(monitor))
case "fifo":
    // reads on the main thread from the FIFO that it opens
    let fd = open(args[3], O_RDWR)
    var c = config(); c.outputs.append(.log(Logger(label: "case-app") { StreamLogHandler.standardError(label: $0) }))
    let monitor = try StallMonitor(c)
    try monitor.watch(.main); try monitor.start()
    onMain(after: 0.3) {
        var byte: UInt8 = 0; var p = pollfd(fd: fd, events: Int16(POLLIN), revents: 0); poll(&p, 1, 700); _ = byte;
        byte = 1
    }
    runFor(2)
    monitor.stop(); print(statsLine(monitor))
default: print("unknown mode")
}
