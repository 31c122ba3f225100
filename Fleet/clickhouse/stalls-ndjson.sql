-- The table of all stalls, from NDJSON files: set the parameter `files` to their names, with wildcards.
-- A report that was collected twice counts once.
CREATE OR REPLACE TABLE stalls ENGINE = MergeTree ORDER BY (fingerprint, started_at) AS
SELECT
    id,
    parseDateTime64BestEffort(startedAt, 6, 'UTC') AS started_at,
    durationMilliseconds AS duration_ms,
    repeats,
    -- With the stalls that the report stands for. Reports of older versions do not say what these lasted.
    duration_ms + if(repeated.totalMilliseconds > 0, repeated.totalMilliseconds, repeats * duration_ms) AS all_ms,
    greatest(duration_ms, repeated.greatestMilliseconds) AS longest_ms,
    fingerprint,
    if(cause.kind = '', transform(kind, ['saturation', 'spinning', 'modeStarvation', 'notRun'],
        ['saturated', 'spinning', 'mode', 'notRun'], 'unknown'), cause.kind) AS cause,
    culprit.function AS function,
    culprit.file AS file,
    culprit.line AS line,
    loop.label AS loop,
    process.name AS service,
    if(metadata['version'] != '', metadata['version'], metadata['service.version']) AS version,
    process.hostname AS host,
    process.pid AS pid,
    process.bootID AS boot_id,
    if(process.startedAt = '', started_at, parseDateTime64BestEffort(process.startedAt, 6, 'UTC')) AS process_started_at
FROM file(
    {files:String}, JSONEachRow,
    'id String, kind String, startedAt String, durationMilliseconds Float64, repeats Int64, repeated Tuple(totalMilliseconds Float64, greatestMilliseconds Float64), fingerprint String, cause Tuple(kind String), culprit Tuple(function String, file String, line Int64), loop Tuple(label String), metadata Map(String, String), process Tuple(name String, hostname String, pid Int64, bootID String, startedAt String)'
)
LIMIT 1 BY id
SETTINGS input_format_skip_unknown_fields = 1, input_format_json_ignore_unknown_keys_in_named_tuple = 1;
