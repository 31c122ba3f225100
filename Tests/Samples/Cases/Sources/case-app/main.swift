// case-app MODE DIR [arguments]
import Foundation
import Dispatch
import Glibc
import StallWatch

setvbuf(stdout, nil, _IOLBF, 0)
let args = CommandLine.arguments
let mode = args.count > 1 ? args[1] : "plain"
let dir = args.count > 2 ? args[2] : "stalls"
func arg(_ i: Int, _ d: Int) -> Int { args.count > i ? Int(args[i]) ?? d : d }
func config(_ threshold: Int = 100) -> StallMonitor.Configuration {
    var c = StallMonitor.Configuration(threshold: .milliseconds(threshold), outputs: [.directory(dir)])
    c.repeats.reportsEveryRepeat = true
    return c
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
case "closeall":
    // a daemon closes all descriptors and opens files of its own, which get the numbers
    var c = config(); c.control = .socket(directory: dir);
    c.health = .init(path: dir + "/health", interval: .milliseconds(200))
    let monitor = try StallMonitor(c)
    // Not the run loop, which needs the descriptors that it has opened.
    let probe = LoopProbe(label: "daemon")
    try monitor.watch(.probe(probe)); try monitor.start()
    func stall(_ m: UInt32) { usleep(400_000); probe.beginTurn(); sleepHere(m); probe.endTurn() }
    stall(200)
    usleep(400_000)
    closefrom(3)
    var pipes: [Int32] = []
    for _ in 0..<60 { var e: [Int32] = [0, 0]; pipe(&e); pipes += e; var b: UInt8 = 7; write(e[1], &b, 1) }
    stall(300); stall(300)
    usleep(400_000)
    monitor.stop()
    var bad = 0
    for i in stride(from: 0, to: pipes.count, by: 2) {
        var b: UInt8 = 0; if fcntl(pipes[i], F_GETFL) < 0 || fcntl(pipes[i + 1], F_GETFL) < 0 { bad += 1; continue };
        var p = pollfd(fd: pipes[i], events: Int16(POLLIN), revents: 0); if poll(&p, 1, 0) != 1 { bad += 1; continue };
        if read(pipes[i], &b, 1) != 1 || b != 7 { bad += 1 }
    }
    print("pipes damaged: \(bad) of \(pipes.count / 2)"); print(statsLine(monitor))
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
case "chdir", "chroot":
    // a program that changes its directory (or its root) after the monitor's start, as daemons do; DIR is relative
    var c = config(); c.outputs += [.ndjson(path: "lines.ndjson"), .statistics("statistics.json")]
    let monitor = try StallMonitor(c)
    try monitor.watch(.main); try monitor.start()
    onMain(after: 0.3) { sleepHere(300) }
    if args.count > 4 {
        onMain(after: 1) {
            sleepHere(200); _ = FileManager.default.changeCurrentDirectoryPath(args[3]); sleepHere(200)
        }
    } else {
        onMain(after: 1) {
            _ = FileManager.default.changeCurrentDirectoryPath(args[3])
            if mode == "chroot" { print("chroot: \(chroot("."))") }
        }
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
case "fifo":
    // reads on the main thread from the FIFO that it opens
    let fd = open(args[3], O_RDWR)
    var c = config(); c.outputs.append(.closure { print($0.summary) })
    let monitor = try StallMonitor(c)
    try monitor.watch(.main); try monitor.start()
    onMain(after: 0.3) {
        var byte: UInt8 = 0; var p = pollfd(fd: fd, events: Int16(POLLIN), revents: 0); poll(&p, 1, 700); _ = byte;
        byte = 1
    }
    runFor(2)
    monitor.stop(); print(statsLine(monitor))
case "target-suspended", "target-busy":
    // a queue whose target queue is suspended for 1.5 s (healthy), or runs its own work for 700 ms (the culprit)
    let target = DispatchQueue(label: "com.example.target")
    let queue = DispatchQueue(label: "com.example.child", target: target)
    let monitor = try StallMonitor(config(250))
    try monitor.watch(.queue(queue, label: "child")); try monitor.start(); queue.async { mark += 1 }
    Thread.detachNewThread {
        usleep(500_000); if mode == "target-suspended" { target.suspend() }
        // Before the child's item, which would else run first or behind it.
        if mode == "target-busy" { target.async { compressOnTarget() } }
        queue.async { mark += 1 }
        queue.async { mark += 1 }
        if mode == "target-suspended" { usleep(1_500_000); target.resume() }
    }
    sleep(3); monitor.stop(); print(statsLine(monitor))
case "pool":
    // blocks of five queues and two tasks block the threads of the pool
    var c = config(250); c.control = .socket(directory: dir)
    let monitor = try StallMonitor(c)
    try monitor.watch(.cooperativePool()); try monitor.start()
    Task.detached { for await report in monitor.makeReports() { print(report.summary) } }
    Thread.detachNewThread {
        usleep(500_000)
        for number in 0..<5 { DispatchQueue(label: "journal.\(number)").async { flushTheJournal() } }
        usleep(50_000)
        for _ in 0..<2 { Task.detached { waitForTheReply() } }
    }
    sleep(7); monitor.stop()
case "e22", "e24":
    // a function whose name has four or sixteen million types in it
    let monitor = try StallMonitor(config(250))
    try monitor.watch(.main); try monitor.start()
    onMain(after: 0.4) { if mode == "e22" { layOutEditor22(T22.self) } else { layOutEditor24(T24.self) } }
    runFor(2)
    let t = now(); monitor.stop(); print("stop took \(ms(now() - t)); \(statsLine(monitor))")
default: print("unknown mode")
}
