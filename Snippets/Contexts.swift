// What a program is working on. The blocks here are in the article "Which request it was".

import CStallWatch
import StallWatch

func answer(_ respond: () async -> Void) async {
    await StallContext.$current.withValue(StallContext("GET /feed", ["user": "free"])) {
        await respond()
    }
}

func importWithoutTasks(_ importEverything: () -> Void) {
    withStallContext("import") {
        importEverything()
    }
}
