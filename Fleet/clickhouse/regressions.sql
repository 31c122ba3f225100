-- The groups that differ between two versions, worst first: the numbers and the rule of `stallwatch diff`. Set the
-- parameters `before_version` and `after_version`.
-- A group is worse if it costs over a quarter more time per hour, and either its stalls are over a quarter longer, or they
-- are more by over two standard deviations.
-- A group of one version is new or gone if the other version would have had 3 at its rate; else it has a question mark.
WITH
chosen AS (
    SELECT *, version = {after_version:String} AS is_after FROM stalls
    WHERE version IN ({before_version:String}, {after_version:String})
),
processes AS (
    SELECT
        is_after,
        max(toUnixTimestamp64Micro(started_at) + toInt64(floor(duration_ms * 1000)))
            - min(toUnixTimestamp64Micro(least(started_at, process_started_at))) AS microseconds
    FROM chosen GROUP BY is_after, service, host, pid, boot_id, process_started_at
),
hours AS (
    SELECT
        greatest(sumIf(microseconds, NOT is_after) / 3.6e9, 1 / 3600) AS before_hours,
        greatest(sumIf(microseconds, is_after) / 3.6e9, 1 / 3600) AS after_hours
    FROM processes
),
sides AS (
    SELECT
        fingerprint,
        toInt64(countIf(NOT is_after) + sumIf(repeats, NOT is_after)) AS before_count,
        toInt64(countIf(is_after) + sumIf(repeats, is_after)) AS after_count,
        sumIf(all_ms, NOT is_after) AS before_ms,
        sumIf(all_ms, is_after) AS after_ms,
        arraySort(groupArrayIf(duration_ms, NOT is_after)) AS before_sorted,
        arraySort(groupArrayIf(duration_ms, is_after)) AS after_sorted,
        -- The nearest rank; 0 for none.
        before_sorted[toUInt64(ceil(0.5 * length(before_sorted)))] AS before_median_ms,
        after_sorted[toUInt64(ceil(0.5 * length(after_sorted)))] AS after_median_ms
    FROM chosen GROUP BY fingerprint
),
rates AS (
    SELECT
        fingerprint, before_count, after_count, before_median_ms, after_median_ms,
        before_ms / before_hours AS before_rate,
        after_ms / after_hours AS after_rate,
        after_hours / before_hours AS scale
    FROM sides CROSS JOIN hours
)
SELECT
    multiIf(
        before_count = 0 AND after_count / scale < 3, 'new?',
        before_count = 0, 'new',
        after_count = 0 AND before_count * scale < 3, 'gone?',
        after_count = 0, 'gone',
        after_rate > before_rate * 1.25 AND (
            after_median_ms > before_median_ms * 1.25
            OR after_count - before_count * scale > 2 * sqrt(after_count + before_count * scale * scale)
        ), 'worse',
        before_rate > after_rate * 1.25 AND (
            before_median_ms > after_median_ms * 1.25
            OR before_count - after_count / scale > 2 * sqrt(before_count + after_count / scale / scale)
        ), 'better',
        'same'
    ) AS change,
    fingerprint, before_count, after_count,
    before_rate AS before_ms_per_hour, after_rate AS after_ms_per_hour, before_median_ms, after_median_ms
FROM rates
ORDER BY after_rate - before_rate DESC, fingerprint;
