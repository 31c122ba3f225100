-- The stalls by fingerprint, worst first: the numbers of `stallwatch top`.
WITH causes AS (
    SELECT fingerprint, cause, sum(all_ms) AS weight FROM stalls GROUP BY ALL
),
culprits AS (
    SELECT fingerprint, "function", file, line, sum(all_ms) AS weight
    FROM stalls WHERE "function" IS NOT NULL GROUP BY ALL
),
loops AS (
    SELECT fingerprint, loop, sum(all_ms) AS weight FROM stalls GROUP BY ALL
),
-- The cause, culprit and loop of most of the time.
main_causes AS (
    SELECT DISTINCT ON (fingerprint) fingerprint, cause FROM causes ORDER BY fingerprint, weight DESC, cause
),
main_culprits AS (
    SELECT DISTINCT ON (fingerprint) fingerprint, "function", file, line FROM culprits
    ORDER BY fingerprint, weight DESC, "function", coalesce(file, ''), coalesce(line, 0)
),
main_loops AS (
    SELECT DISTINCT ON (fingerprint) fingerprint, loop FROM loops ORDER BY fingerprint, weight DESC, loop
),
numbers AS (
    SELECT
        fingerprint,
        count(*) + sum(repeats) AS count,
        count(*) AS reports,
        sum(all_ms) AS total_ms,
        quantile_disc(duration_ms, 0.5) AS p50_ms,
        quantile_disc(duration_ms, 0.95) AS p95_ms,
        max(longest_ms) AS max_ms,
        count(DISTINCT host) AS hosts,
        min(started_at) AS first_seen,
        max(started_at) AS last_seen
    FROM stalls GROUP BY fingerprint
)
SELECT numbers.*, main_causes.cause, main_culprits."function", main_culprits.file, main_culprits.line, main_loops.loop
FROM numbers
LEFT JOIN main_causes ON main_causes.fingerprint IS NOT DISTINCT FROM numbers.fingerprint
LEFT JOIN main_culprits ON main_culprits.fingerprint IS NOT DISTINCT FROM numbers.fingerprint
LEFT JOIN main_loops ON main_loops.fingerprint IS NOT DISTINCT FROM numbers.fingerprint
ORDER BY total_ms DESC, fingerprint;
