internal import CUnwind
import Glibc

extension CUnwindEngine {
    /// The most bytes of a task's name that are read.
    static let maximumTaskName = Int(CUNWIND_TASK_NAME_BYTES)
    private static let maximumPlaces = 16

    func addContext(to captured: inout CapturedStack) {
        let context = cunwind_engine_context(engine)
        switch cunwind_context_status(rawValue: UInt32(context.pointee.status)) {
        case CUNWIND_CONTEXT_TAKEN: captured.context = Self.captured(context)
        case CUNWIND_CONTEXT_MOVED: captured.missingContextReason = "the thread went on before its context was read"
        case CUNWIND_CONTEXT_NO_THREAD_POINTER:
            captured.missingContextReason = "the kernel does not tell the thread's thread pointer"
        default: break
        }
    }

    private static func captured(_ context: UnsafePointer<cunwind_context>) -> CapturedContext? {
        let context = context.pointee
        func bytes<Field>(_ field: Field, _ count: UInt16) -> [UInt8] {
            withUnsafeBytes(of: field) { Array($0.prefix(Int(count))) }
        }
        var captured = CapturedContext(
            payload: bytes(context.payload, context.payload_length),
            record: bytes(context.record, context.record_length)
        )
        if context.has_task {
            let name = bytes(context.task_name, context.task_name_length)
            captured.task = .init(
                id: context.task_id, name: name.isEmpty ? nil : name, isNameCut: context.task_name_is_cut)
        }
        return captured.isEmpty ? nil : captured
    }

    /// Lets all engines of the process read contexts; the layout is kept forever, for captures at any time.
    package static func publish(_ layout: ContextLayout) {
        let kept = UnsafeMutablePointer<cunwind_context_layout>.allocate(capacity: 1)
        kept.initialize(to: cunwind_context_layout(layout))
        cunwind_publish_context_layout(kept)
    }

    static func contextOfThisThread(_ layout: ContextLayout) -> CapturedContext? {
        var layout = cunwind_context_layout(layout)
        var context = cunwind_context()
        cunwind_context_of_this_thread(&layout, &context)
        return withUnsafePointer(to: &context, captured)
    }

    /// Returns where the calling thread's variables have a value, or with a key: where they lead to a list of
    /// task-local values that begins with it; or the address of memory that begins with the value (`isPointedTo`).
    static func placesInThreadStorage(of value: UInt64, isPointedTo: Bool = false, key: UInt64 = 0) -> [Int64] {
        guard value != 0 else { return [] }
        var places = [Int64](repeating: 0, count: maximumPlaces)
        let count = cunwind_find_in_thread_storage(value, isPointedTo, key, &places, maximumPlaces)
        return Array(places.prefix(count))
    }

    /// The calling thread's thread pointer, from which the places of its variables count.
    static var ownThreadPointer: UInt64 {
        var place: UInt8 = 0
        return withUnsafePointer(to: &place) { pointer in
            UInt64(UInt(bitPattern: pointer)) &- UInt64(bitPattern: cunwind_thread_offset(pointer))
        }
    }

    /// Returns the place of OpenTelemetry's thread-local variable; `nil` if no image of the process exports it.
    static func threadContextRecord() -> ContextLayout.Record? {
        // A thread-local symbol has an address of its own in each thread: this is the calling thread's.
        guard let variable = dlsym(nil, "otel_thread_ctx_v1") else { return nil }
        var module: UInt64 = 0
        var offset: UInt64 = 0
        guard cunwind_thread_storage_place(variable, &module, &offset) else { return nil }
        return ContextLayout.Record(module: module, offset: offset)
    }
}

extension cunwind_context_layout {
    fileprivate init(_ layout: ContextLayout) {
        self.init()
        knows_pointers = layout.robustList != nil
        robust_list = layout.robustList ?? 0
        knows_tasks = layout.task != nil
        task = layout.task ?? 0
        knows_task_names = layout.hasTaskNames
        knows_plain_locals = layout.plainLocals != nil
        plain_locals = layout.plainLocals ?? 0
        knows_scopes = layout.scope != nil
        scope = layout.scope ?? 0
        knows_record = layout.record != nil
        record = layout.record?.offset ?? 0
        record_module = layout.record?.module ?? 0
        key = layout.key
        payload_offset = layout.payloadOffset
    }
}
