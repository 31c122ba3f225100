-- The view of all stalls over the table `otel_logs`, which the ClickHouse exporters of OpenTelemetry collectors fill with
-- what `stallwatch ship` sends. A report that was delivered twice counts once.
CREATE OR REPLACE VIEW stalls AS
SELECT
    LogAttributes['log.record.uid'] AS id,
    toDateTime64(Timestamp, 6, 'UTC') AS started_at,
    toFloat64(LogAttributes['stallwatch.duration_ms']) AS duration_ms,
    toInt64(LogAttributes['stallwatch.repeats']) AS repeats,
    -- With the stalls that the report stands for. Reports of older versions do not say what these lasted.
    duration_ms + if(
        LogAttributes['stallwatch.repeated.total_ms'] = '', repeats * duration_ms,
        toFloat64(LogAttributes['stallwatch.repeated.total_ms'])
    ) AS all_ms,
    greatest(duration_ms, toFloat64OrZero(LogAttributes['stallwatch.repeated.greatest_ms'])) AS longest_ms,
    LogAttributes['stallwatch.fingerprint'] AS fingerprint,
    LogAttributes['stallwatch.cause'] AS cause,
    LogAttributes['code.function.name'] AS function,
    LogAttributes['code.file.path'] AS file,
    toInt64OrZero(LogAttributes['code.line.number']) AS line,
    LogAttributes['stallwatch.loop.label'] AS loop,
    ServiceName AS service,
    ResourceAttributes['service.version'] AS version,
    ResourceAttributes['host.name'] AS host,
    toInt64OrZero(ResourceAttributes['process.pid']) AS pid,
    ResourceAttributes['stallwatch.boot_id'] AS boot_id,
    if(
        ResourceAttributes['process.creation.time'] = '', started_at,
        parseDateTime64BestEffortOrZero(ResourceAttributes['process.creation.time'], 6, 'UTC')
    ) AS process_started_at
FROM otel_logs
WHERE LogAttributes['stallwatch.duration_ms'] != ''
LIMIT 1 BY id;
