-- The groups whose first stall is on a given day (UTC), the most costly first.
--   SET VARIABLE day = '2026-11-14';
SELECT
    fingerprint,
    count(*) + sum(repeats) AS count,
    sum(all_ms) AS total_ms,
    min(started_at) AS first_seen,
    list(DISTINCT version ORDER BY version) AS versions,
    any_value("function") AS "function"
FROM stalls
GROUP BY fingerprint
HAVING min(started_at)::DATE = getvariable('day')::DATE
ORDER BY total_ms DESC, fingerprint;
