-- The view of all stalls over the table `stall_reports`, which the agents of Fleet/agents fill: a report in each row.
-- A report that arrived twice counts once.
CREATE TABLE IF NOT EXISTS stall_reports (report String) ENGINE = MergeTree ORDER BY tuple();
CREATE OR REPLACE VIEW stalls AS
SELECT
    fields.id AS id,
    parseDateTime64BestEffort(fields.startedAt, 6, 'UTC') AS started_at,
    fields.durationMilliseconds AS duration_ms,
    fields.repeats AS repeats,
    -- With the stalls that the report stands for. Reports of older versions do not say what these lasted.
    duration_ms + if(fields.repeated.totalMilliseconds > 0, fields.repeated.totalMilliseconds, repeats * duration_ms) AS all_ms,
    greatest(duration_ms, fields.repeated.greatestMilliseconds) AS longest_ms,
    fields.fingerprint AS fingerprint,
    if(fields.cause.kind = '', transform(fields.kind, ['saturation', 'spinning', 'modeStarvation', 'notRun'],
        ['saturated', 'spinning', 'mode', 'notRun'], 'unknown'), fields.cause.kind) AS cause,
    fields.culprit.function AS function,
    fields.culprit.file AS file,
    fields.culprit.line AS line,
    fields.loop.label AS loop,
    fields.process.name AS service,
    if(fields.metadata['version'] != '', fields.metadata['version'], fields.metadata['service.version']) AS version,
    fields.process.hostname AS host,
    fields.process.pid AS pid,
    fields.process.bootID AS boot_id,
    if(fields.process.startedAt = '', started_at, parseDateTime64BestEffort(fields.process.startedAt, 6, 'UTC'))
        AS process_started_at
FROM (
    SELECT JSONExtract(
        report,
        'Tuple(id String, kind String, startedAt String, durationMilliseconds Float64, repeats Int64, repeated Tuple(totalMilliseconds Float64, greatestMilliseconds Float64), fingerprint String, cause Tuple(kind String), culprit Tuple(function String, file String, line Int64), loop Tuple(label String), metadata Map(String, String), process Tuple(name String, hostname String, pid Int64, bootID String, startedAt String))'
    ) AS fields
    FROM stall_reports
)
LIMIT 1 BY id;
