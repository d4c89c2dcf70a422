-- The tables of a lake for DuckDB with its extension for Delta: run this file before views.sql.
--
--   INSTALL delta;
--   SET VARIABLE lake = '/data/lake';   -- or s3://…, abfss://…
--   .read tables.sql
--   .read views.sql
--   FROM current_levels;

CREATE SCHEMA IF NOT EXISTS gold;
CREATE SCHEMA IF NOT EXISTS silver;
CREATE OR REPLACE VIEW gold.epochs AS
    FROM delta_scan(getvariable('lake') || '/gold/epochs');
CREATE OR REPLACE VIEW gold.feature_changes AS
    FROM delta_scan(getvariable('lake') || '/gold/feature_changes');
CREATE OR REPLACE VIEW gold.alerts AS
    FROM delta_scan(getvariable('lake') || '/gold/alerts');
CREATE OR REPLACE VIEW gold.operations AS
    FROM delta_scan(getvariable('lake') || '/gold/operations');
CREATE OR REPLACE VIEW gold.capability_intervals AS
    FROM delta_scan(getvariable('lake') || '/gold/capability_intervals');
CREATE OR REPLACE VIEW gold.incompatibilities AS
    FROM delta_scan(getvariable('lake') || '/gold/incompatibilities');
CREATE OR REPLACE VIEW gold.upgrades AS
    FROM delta_scan(getvariable('lake') || '/gold/upgrades');
CREATE OR REPLACE VIEW gold.readiness_by_day AS
    FROM delta_scan(getvariable('lake') || '/gold/readiness_by_day');
CREATE OR REPLACE VIEW silver.answers AS
    FROM delta_scan(getvariable('lake') || '/silver/answers');
CREATE OR REPLACE VIEW silver.source_states AS
    FROM delta_scan(getvariable('lake') || '/silver/source_states');
