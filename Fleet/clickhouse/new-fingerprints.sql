-- The groups whose first stall is on a given day (UTC), the most costly first. Set the parameter `day`.
SELECT
    fingerprint,
    toInt64(count() + sum(repeats)) AS count,
    sum(all_ms) AS total_ms,
    min(started_at) AS first_seen,
    arraySort(groupUniqArray(version)) AS versions,
    any(function) AS function
FROM stalls
GROUP BY fingerprint
HAVING toDate(first_seen) = toDate({day:String})
ORDER BY total_ms DESC, fingerprint;
