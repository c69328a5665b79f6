-- The runs of a dataset, one row each, as the index describes them. `--where`
-- selects rows of this table. Facts that the user gave at ingest are columns
-- after these.

CREATE TABLE syncline_run(
  run VARCHAR,
  name VARCHAR,
  host VARCHAR,
  day DATE,
  started_ns BIGINT,
  duration_ns BIGINT,
  source VARCHAR,
  recorder VARCHAR,
  kernel VARCHAR,
  request_filter VARCHAR,
  requests BIGINT,
  events BIGINT,
  lost BIGINT,
  bytes BIGINT,
  schema_version BIGINT,
  syncline_version VARCHAR
);
