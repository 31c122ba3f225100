-- The table of all stalls, from NDJSON files: set the variable `files` to their names, with wildcards.
--   SET VARIABLE files = 'collected/*.ndjson';
-- A report that was collected twice counts once.
CREATE OR REPLACE TABLE stalls AS
SELECT DISTINCT ON (id)
    id,
    startedAt::TIMESTAMP AS started_at,
    durationMilliseconds AS duration_ms,
    repeats,
    -- With the stalls that the report stands for. Reports of older versions do not say what these lasted.
    durationMilliseconds + coalesce(repeated.totalMilliseconds, repeats * durationMilliseconds) AS all_ms,
    greatest(durationMilliseconds, coalesce(repeated.greatestMilliseconds, 0)) AS longest_ms,
    fingerprint,
    coalesce(cause.kind, CASE kind WHEN 'saturation' THEN 'saturated' WHEN 'spinning' THEN 'spinning'
        WHEN 'modeStarvation' THEN 'mode' WHEN 'notRun' THEN 'notRun' ELSE 'unknown' END) AS cause,
    culprit."function" AS "function",
    culprit.file AS file,
    culprit.line AS line,
    loop.label AS loop,
    process.name AS service,
    coalesce(metadata['version'], metadata['service.version'], '') AS version,
    process.hostname AS host,
    process.pid AS pid,
    process.bootID AS boot_id,
    process.startedAt::TIMESTAMP AS process_started_at
FROM read_json(
    getvariable('files'), format = 'newline_delimited', maximum_object_size = 33554432,
    columns = {
        id: 'VARCHAR', kind: 'VARCHAR', startedAt: 'VARCHAR', durationMilliseconds: 'DOUBLE', repeats: 'BIGINT', fingerprint: 'VARCHAR',
        repeated: 'STRUCT(totalMilliseconds DOUBLE, greatestMilliseconds DOUBLE)',
        cause: 'STRUCT(kind VARCHAR)', culprit: 'STRUCT("function" VARCHAR, file VARCHAR, line BIGINT)',
        loop: 'STRUCT(label VARCHAR)', metadata: 'MAP(VARCHAR, VARCHAR)',
        process: 'STRUCT(name VARCHAR, hostname VARCHAR, pid BIGINT, bootID VARCHAR, startedAt VARCHAR)'
    }
);
