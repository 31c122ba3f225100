import Foundation

/// Makes images in tasks that block the threads of the pool.
public enum Thumbnails {
    /// Makes an image in each of a few tasks.
    public static func makeAll(_ count: Int) async {
        await withTaskGroup { group in
            for _ in 0..<count { group.addTask { makeOne() } }
        }
    }

    private static func makeOne() {
        usleep(1_000_000)  // stalls: pool
    }
}
