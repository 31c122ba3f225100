import Dispatch
import GRDB
import Glibc

/// A database in memory with one table.
private let database: DatabaseQueue = {
    do {
        let database = try DatabaseQueue()
        try database.write { db in
            try db.create(table: "player") { table in
                table.autoIncrementedPrimaryKey("id")
                table.column("name", .text)
                table.column("team", .text)
                table.column("score", .integer)
            }
            for number in 0..<3_000 {
                try Player(id: nil, name: "player \(number)", team: "team \(number % 17)", score: number).insert(db)
            }
        }
        return database
    } catch {
        fatalError("the database in memory cannot be made: \(error)")
    }
}()

private struct Player: Codable, FetchableRecord, PersistableRecord {
    static let databaseTableName = "player"
    var id: Int64?
    var name: String
    var team: String
    var score: Int
}

@inline(never)
func prepareDatabase() throws {
    use(try database.read { try Player.fetchCount($0) })
}

@inline(never)
private func countSlowly() throws {
    let count = try database.read { db in
        try Int.fetchOne(
            db,
            sql: """
                WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < 1200000)
                SELECT sum(n % 7) FROM counter
                """
        )
    }
    use(count)
    finish()
}

@inline(never)
private func insertPlayers() throws {
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end {
        try database.write { db in
            for number in 0..<200 {
                try Player(id: nil, name: "guest \(number)", team: "guests", score: number).insert(db)
            }
            _ = try Player.filter(Column("team") == "guests").deleteAll(db)
        }
    }
    finish()
}

@inline(never)
private func fetchPlayers() throws {
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end {
        let players = try database.read { try Player.filter(Column("score") > 10).order(Column("name")).fetchAll($0) }
        use(players)
    }
    finish()
}

@inline(never)
private func readWhileWriting() throws {
    let isWriting = DispatchSemaphore(value: 0)
    Thread.detach {
        try? database.write { _ in
            isWriting.signal()
            usleep(stallMicroseconds)
        }
        finish()
    }
    isWriting.wait()
    use(try database.read { try Int.fetchOne($0, sql: "SELECT 1") })
    finish()
}

@inline(never)
private func stallInTransaction(_ database: DatabaseQueue) throws {
    try database.write { db in
        usleep(stallMicroseconds)
        try db.execute(sql: "SELECT 1")
        finish()
    }
    finish()
}

/// SQLite calls the closure of the app, from C.
@inline(never)
private func callFunctionInSQL(_ database: DatabaseQueue) throws {
    let slow = DatabaseFunction("slow", argumentCount: 1) { values in
        usleep(stallMicroseconds / 4)
        finish()
        return Int.fromDatabaseValue(values[0]).map { $0 + 1 }
    }
    try database.write { db in
        db.add(function: slow)
        use(try Int.fetchAll(db, sql: "SELECT slow(column1) FROM (VALUES (1), (2), (3), (4))"))
    }
    finish()
}

let databaseStalls = [
    LabeledStall("GRDB: slow SQL in read", culprit: "countSlowly", .computing) { try countSlowly() },
    LabeledStall("GRDB: inserts in write", culprit: "insertPlayers", .computing) { try insertPlayers() },
    LabeledStall("GRDB: decodes records", culprit: "fetchPlayers", .computing) { try fetchPlayers() },
    LabeledStall("GRDB: read behind a write", culprit: "readWhileWriting", .waitingForLock, lock: "dispatchQueue") {
        try readWhileWriting()
    },
    LabeledStall("GRDB: closure of a transaction", culprit: "stallInTransaction", .sleeping) {
        try stallInTransaction(database)
    },
    LabeledStall("GRDB: function in SQL", culprit: "callFunctionInSQL", .sleeping) {
        try callFunctionInSQL(database)
    },
]
