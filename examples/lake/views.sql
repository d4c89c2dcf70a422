-- Questions that people ask about a fleet, as views of a lake for DuckDB.
--
-- They read gold.* and silver.*, which tables.sql declares by DuckDB's extension for Delta, and
-- query.py by the Python package deltalake. A view shows what the lake knows: followed_until says
-- how far that is for each cluster.

SET TimeZone = 'UTC';

-- How far is each cluster followed, and by which sources? seen_at is the newest report of a source.
CREATE OR REPLACE VIEW followed_until AS
SELECT cluster, source, state, seen_at, detail
  FROM silver.source_states
QUALIFY row_number() OVER (PARTITION BY cluster, source ORDER BY seen_at DESC, "offset" DESC, "index" DESC) = 1;

-- Which levels did each cluster have at a moment? FROM levels_at(TIMESTAMPTZ '2026-11-20 12:00Z')
-- A moment before the first snapshot of a cluster gives no rows of it.
CREATE OR REPLACE MACRO levels_at(moment) AS TABLE
SELECT cluster, entry.key AS feature, entry.value AS level, revision
  FROM (
    SELECT cluster, revision, unnest(map_entries(finalized)) AS entry
      FROM (
        SELECT cluster, revision, finalized
          FROM gold.epochs
         WHERE "at" <= moment
       QUALIFY row_number() OVER (PARTITION BY cluster ORDER BY revision DESC) = 1
      )
  );

-- Which levels does each cluster have, and since when?
CREATE OR REPLACE VIEW current_levels AS
SELECT levels.cluster, levels.feature, levels.level, changes.since, reports.followed_until
  FROM (
    SELECT cluster, entry.key AS feature, entry.value AS level
      FROM (
        SELECT cluster, unnest(map_entries(finalized)) AS entry
          FROM (
            SELECT cluster, finalized
              FROM gold.epochs
           QUALIFY row_number() OVER (PARTITION BY cluster ORDER BY revision DESC) = 1
          )
      )
  ) AS levels
  LEFT JOIN (
    SELECT cluster, feature, coalesce(appended_at, seen_at) AS since
      FROM gold.feature_changes
   QUALIFY row_number() OVER (PARTITION BY cluster, feature ORDER BY revision DESC) = 1
  ) AS changes USING (cluster, feature)
  LEFT JOIN (
    SELECT cluster, max(seen_at) AS followed_until FROM silver.source_states GROUP BY cluster
  ) AS reports USING (cluster)
 ORDER BY cluster, feature;

-- Who is incompatible now, and since when? verdict is no, or unknown where a range is not known.
CREATE OR REPLACE VIEW incompatible_now AS
SELECT cluster, role, node_id, feature, level, "range", verdict, reason, since
  FROM gold.incompatibilities
 WHERE until IS NULL
 ORDER BY since;

-- Who changed a level, and when? Kafka records no user: controller is the node that led the quorum,
-- NULL where that is not known, or the change was found by comparison with a snapshot.
CREATE OR REPLACE VIEW level_changes AS
SELECT changes.cluster, changes.feature, changes.before, changes.after, changes.kind,
       coalesce(changes.appended_at, changes.seen_at) AS changed_at,
       CASE WHEN epochs.leader_id >= 0 AND NOT changes.from_snapshot THEN epochs.leader_id END
           AS controller,
       changes.revision
  FROM gold.feature_changes AS changes
  LEFT JOIN gold.epochs AS epochs USING (cluster, revision)
 ORDER BY changed_at DESC;

-- Which node was the slowest of an upgrade? waited is the time since the node before it came back;
-- NULL for the first one.
CREATE OR REPLACE VIEW slowest_nodes AS
SELECT cluster, upgrade, direction, node.role AS role, node.node_id AS node_id,
       node.release AS release, node."at" AS came_at,
       node."at" - lag(node."at") OVER (PARTITION BY cluster, upgrade ORDER BY node."at") AS waited
  FROM (SELECT cluster, id AS upgrade, direction, unnest(nodes) AS node FROM gold.upgrades)
 ORDER BY waited DESC NULLS LAST;

-- Which clusters drifted from the others? usual_level is that of most clusters of the lake (the higher
-- one of two equally frequent ones); NULL: not finalized.
CREATE OR REPLACE VIEW drifted_levels AS
WITH clusters AS (SELECT DISTINCT cluster FROM gold.epochs),
features AS (SELECT DISTINCT feature FROM current_levels),
levels AS (
    SELECT clusters.cluster, features.feature, current_levels.level
      FROM clusters CROSS JOIN features LEFT JOIN current_levels USING (cluster, feature)
),
usual AS (
    SELECT feature, level AS usual_level, count(*) AS clusters
      FROM levels
     GROUP BY feature, level
   QUALIFY row_number() OVER (PARTITION BY feature ORDER BY count(*) DESC, level DESC NULLS LAST) = 1
)
SELECT cluster, feature, level, usual_level, usual.clusters AS clusters_with_usual_level
  FROM levels JOIN usual USING (feature)
 WHERE level IS DISTINCT FROM usual_level
 ORDER BY cluster, feature;

-- What software does the fleet run? release NULL: the ranges of these nodes are of no release, as with
-- levels that are not released yet.
CREATE OR REPLACE VIEW software AS
SELECT role, release, count(*) AS nodes, count(DISTINCT cluster) AS clusters
  FROM gold.capability_intervals
 WHERE until IS NULL
 GROUP BY role, release
 ORDER BY role, release;

-- To which level can a feature be raised, as far as nodes are concerned? highest is the level that all
-- nodes of the cluster support: 0 if one does not support the feature, NULL if the ranges of one are
-- not known in full. For ELR: WHERE feature = 'eligible.leader.replicas.version'.
CREATE OR REPLACE VIEW supported_levels AS
WITH nodes AS (
    SELECT cluster, role, node_id, ranges, complete
      FROM gold.capability_intervals
     WHERE until IS NULL
),
features AS (SELECT DISTINCT unnest(map_keys(ranges)) AS feature FROM nodes),
highest AS (
    SELECT cluster, feature,
           CASE WHEN bool_and(complete) THEN min(coalesce(ranges[feature][2], 0)) END AS highest
      FROM nodes CROSS JOIN features
     GROUP BY cluster, feature
)
SELECT cluster, feature, level, highest, highest > coalesce(level, 0) AS can_be_raised
  FROM highest LEFT JOIN current_levels USING (cluster, feature)
 ORDER BY cluster, feature;

-- How many alerts fired in each week? A week begins on Monday, in UTC.
CREATE OR REPLACE VIEW alerts_per_week AS
SELECT date_trunc('week', since) AS week, rule, count(*) AS fired,
       count(DISTINCT cluster) AS clusters
  FROM (SELECT DISTINCT cluster, alert_id, rule, since FROM gold.alerts)
 GROUP BY week, rule
 ORDER BY week DESC, fired DESC, rule;

-- Which alerts fire now?
CREATE OR REPLACE VIEW alerts_now AS
SELECT cluster, alert_id, rule, severity, subject, summary, since
  FROM (
    SELECT *, max(state) OVER (PARTITION BY cluster, alert_id, since) AS ended
      FROM gold.alerts
  )
 WHERE ended = 'firing'
QUALIFY row_number() OVER (PARTITION BY cluster, alert_id ORDER BY since DESC, "at" DESC) = 1
 ORDER BY severity, since;

-- Which nodes did not answer when they were last asked? They are not removed from the cluster.
CREATE OR REPLACE VIEW unreached_nodes AS
SELECT cluster, role, node_id, address, detail, seen_at
  FROM (
    SELECT *
      FROM silver.answers
   QUALIFY row_number() OVER (
        PARTITION BY cluster, role, node_id ORDER BY seen_at DESC, "offset" DESC, "index" DESC) = 1
  )
 WHERE NOT answered AND NOT coalesce(gone, false)
 ORDER BY seen_at;

-- Can each cluster be upgraded to a release? verdict is yes, no or unknown at the end of day.
CREATE OR REPLACE VIEW readiness_now AS
SELECT cluster, target, verdict, finalized, blocker_names, reasons, day
  FROM gold.readiness_by_day
QUALIFY row_number() OVER (PARTITION BY cluster, target ORDER BY day DESC) = 1
 ORDER BY cluster, target;
