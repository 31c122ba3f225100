-- Stalled seconds per hour of uptime, by host and version. The uptime of a process is from its start to the end of its
-- last stall, as in `stallwatch diff`: a lower bound.
WITH processes AS (
    SELECT
        service, version, host, pid, boot_id, process_started_at,
        min(least(started_at, coalesce(process_started_at, started_at))) AS began,
        max(started_at + to_microseconds(floor(duration_ms * 1000)::BIGINT)) AS ended,
        count(*) + sum(repeats) AS count,
        sum(all_ms) AS total_ms
    FROM stalls GROUP BY ALL
)
SELECT
    host, version,
    count(*) AS processes,
    sum(count) AS count,
    sum(epoch_us(ended) - epoch_us(began)) / 3.6e9 AS hours,
    sum(total_ms) AS total_ms,
    sum(total_ms) / 1000 / greatest(sum(epoch_us(ended) - epoch_us(began)) / 3.6e9, 1.0 / 3600) AS stalled_seconds_per_hour
FROM processes GROUP BY host, version
ORDER BY stalled_seconds_per_hour DESC, host, version;
