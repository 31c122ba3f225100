-- Stalled seconds per hour of uptime, by host and version. The uptime of a process is from its start to the end of its
-- last stall, as in `stallwatch diff`: a lower bound.
WITH processes AS (
    SELECT
        service, version, host, pid, boot_id, process_started_at,
        max(toUnixTimestamp64Micro(started_at) + toInt64(floor(duration_ms * 1000)))
            - min(toUnixTimestamp64Micro(least(started_at, process_started_at))) AS microseconds,
        toInt64(count() + sum(repeats)) AS stalls_counted,
        sum(all_ms) AS stalled_ms
    FROM stalls GROUP BY service, version, host, pid, boot_id, process_started_at
)
SELECT
    host, version,
    count() AS processes,
    sum(stalls_counted) AS count,
    sum(microseconds) / 3.6e9 AS hours,
    sum(stalled_ms) AS total_ms,
    total_ms / 1000 / greatest(hours, 1 / 3600) AS stalled_seconds_per_hour
FROM processes GROUP BY host, version
ORDER BY stalled_seconds_per_hour DESC, host, version;
