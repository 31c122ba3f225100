-- The stalls by fingerprint, worst first: the numbers of `stallwatch top`.
WITH
causes AS (
    SELECT fingerprint, argMax(cause, (weight, -place)) AS cause
    FROM (
        SELECT *, row_number() OVER (PARTITION BY fingerprint ORDER BY cause) AS place
        FROM (SELECT fingerprint, cause, sum(all_ms) AS weight FROM stalls GROUP BY fingerprint, cause)
    )
    GROUP BY fingerprint
),
culprits AS (
    SELECT fingerprint, argMax((function, file, line), (weight, -place)) AS culprit
    FROM (
        SELECT *, row_number() OVER (PARTITION BY fingerprint ORDER BY function, file, line) AS place
        FROM (
            SELECT fingerprint, function, file, line, sum(all_ms) AS weight
            FROM stalls WHERE function != '' GROUP BY fingerprint, function, file, line
        )
    )
    GROUP BY fingerprint
),
loops AS (
    SELECT fingerprint, argMax(loop, (weight, -place)) AS loop
    FROM (
        SELECT *, row_number() OVER (PARTITION BY fingerprint ORDER BY loop) AS place
        FROM (SELECT fingerprint, loop, sum(all_ms) AS weight FROM stalls GROUP BY fingerprint, loop)
    )
    GROUP BY fingerprint
),
numbers AS (
    SELECT
        fingerprint,
        toInt64(count() + sum(repeats)) AS count,
        count() AS reports,
        sum(all_ms) AS total_ms,
        arraySort(groupArray(duration_ms)) AS sorted,
        -- The nearest rank.
        sorted[greatest(toUInt64(ceil(0.5 * reports)), 1)] AS p50_ms,
        sorted[greatest(toUInt64(ceil(0.95 * reports)), 1)] AS p95_ms,
        max(longest_ms) AS max_ms,
        uniqExact(host) AS hosts,
        min(started_at) AS first_seen,
        max(started_at) AS last_seen
    FROM stalls GROUP BY fingerprint
)
SELECT
    numbers.fingerprint AS fingerprint, count, reports, total_ms, p50_ms, p95_ms, max_ms, hosts, first_seen, last_seen,
    causes.cause AS cause, culprits.culprit.1 AS function, culprits.culprit.2 AS file, culprits.culprit.3 AS line,
    loops.loop AS loop
FROM numbers
LEFT JOIN causes ON causes.fingerprint = numbers.fingerprint
LEFT JOIN culprits ON culprits.fingerprint = numbers.fingerprint
LEFT JOIN loops ON loops.fingerprint = numbers.fingerprint
ORDER BY total_ms DESC, fingerprint;
