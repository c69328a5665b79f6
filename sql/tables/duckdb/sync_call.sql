-- Syncs as a person counts them: a call with all its requests, one row each.
-- The columns are those of sql/tables/perfetto/sync_call.sql.

CREATE OR REPLACE VIEW syncline_sync_call AS SELECT * FROM sync_calls!();
