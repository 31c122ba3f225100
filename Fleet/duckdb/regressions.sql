-- The groups that differ between two versions, worst first: the numbers and the rule of `stallwatch diff`.
--   SET VARIABLE before_version = '1.4.2'; SET VARIABLE after_version = '1.5.0';
-- A group is worse if it costs over a quarter more time per hour, and either its stalls are over a quarter longer, or they
-- are more by over two standard deviations.
-- A group of one version is new or gone if the other version would have had 3 at its rate; else it has a question mark.
WITH chosen AS (
    SELECT *, version = getvariable('after_version') AS is_after FROM stalls
    WHERE version IN (getvariable('before_version'), getvariable('after_version'))
),
processes AS (
    SELECT
        is_after,
        max(epoch_us(started_at) + floor(duration_ms * 1000)::BIGINT)
            - min(epoch_us(least(started_at, coalesce(process_started_at, started_at)))) AS microseconds
    FROM chosen GROUP BY is_after, service, host, pid, boot_id, process_started_at
),
hours AS (
    SELECT
        greatest(sum(microseconds) FILTER (NOT is_after) / 3.6e9, 1.0 / 3600) AS before_hours,
        greatest(sum(microseconds) FILTER (is_after) / 3.6e9, 1.0 / 3600) AS after_hours
    FROM processes
),
sides AS (
    SELECT
        fingerprint,
        coalesce(count(*) FILTER (NOT is_after) + sum(repeats) FILTER (NOT is_after), 0) AS before_count,
        coalesce(count(*) FILTER (is_after) + sum(repeats) FILTER (is_after), 0) AS after_count,
        coalesce(sum(all_ms) FILTER (NOT is_after), 0) AS before_ms,
        coalesce(sum(all_ms) FILTER (is_after), 0) AS after_ms,
        coalesce(quantile_disc(duration_ms, 0.5) FILTER (NOT is_after), 0) AS before_median_ms,
        coalesce(quantile_disc(duration_ms, 0.5) FILTER (is_after), 0) AS after_median_ms
    FROM chosen GROUP BY fingerprint
),
rates AS (
    SELECT
        *,
        before_ms / before_hours AS before_rate,
        after_ms / after_hours AS after_rate,
        after_hours / before_hours AS scale
    FROM sides, hours
),
judged AS (
    SELECT
        *,
        after_rate > before_rate * 1.25 AND (
            after_median_ms > before_median_ms * 1.25
            OR after_count - before_count * scale > 2 * sqrt(after_count + before_count * scale * scale)
        ) AS is_worse,
        before_rate > after_rate * 1.25 AND (
            before_median_ms > after_median_ms * 1.25
            OR before_count - after_count / scale > 2 * sqrt(before_count + after_count / scale / scale)
        ) AS is_better
    FROM rates
)
SELECT
    CASE
        WHEN before_count = 0 AND after_count / scale < 3 THEN 'new?'
        WHEN before_count = 0 THEN 'new'
        WHEN after_count = 0 AND before_count * scale < 3 THEN 'gone?'
        WHEN after_count = 0 THEN 'gone'
        WHEN is_worse THEN 'worse'
        WHEN is_better THEN 'better'
        ELSE 'same'
    END AS change,
    fingerprint, before_count, after_count,
    before_rate AS before_ms_per_hour, after_rate AS after_ms_per_hour, before_median_ms, after_median_ms
FROM judged
ORDER BY after_rate - before_rate DESC, fingerprint;
