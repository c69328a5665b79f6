-- Columns of the files that the views read, and their types there. The columns
-- are described in sql/perfetto/.
--
-- A file may lack a column, which is then null, or a whole table, which is then
-- empty.
--
-- Generated from sql/columns.toml by `python -m tests.columns`.

CREATE OR REPLACE TABLE _syncline_columns_sync(
  ts_ns BIGINT,
  dur_ns BIGINT,
  tid BIGINT,
  pid BIGINT,
  comm VARCHAR,
  process VARCHAR,
  cgroup VARCHAR,
  op VARCHAR,
  datasync BOOLEAN,
  path VARCHAR,
  container_path VARCHAR,
  dev VARCHAR,
  ino BIGINT,
  fs VARCHAR,
  id UBIGINT,
  ret BIGINT,
  syscall_ns BIGINT,
  writeback_ns BIGINT,
  before_submit_ns BIGINT,
  after_complete_ns BIGINT,
  journal_ns BIGINT,
  flush_ns BIGINT,
  residue_ns BIGINT,
  bytes BIGINT,
  folios BIGINT,
  bios BIGINT,
  ranges BIGINT,
  first_offset BIGINT,
  last_offset BIGINT,
  stack VARCHAR,
  confidence VARCHAR,
  incomplete VARCHAR,
  sync_id BIGINT,
  start_ns BIGINT
);

CREATE OR REPLACE TABLE _syncline_columns_bio(
  bio_id BIGINT,
  sync_id BIGINT,
  commit_id BIGINT,
  id UBIGINT,
  ts_ns BIGINT,
  dur_ns BIGINT,
  queue_ns BIGINT,
  device_ns BIGINT,
  requeues BIGINT,
  requeue_ns BIGINT,
  parts BIGINT,
  error BIGINT,
  bio VARCHAR,
  dev VARCHAR,
  below VARCHAR,
  sector BIGINT,
  bytes BIGINT,
  folios BIGINT,
  ranges BIGINT,
  first_offset BIGINT,
  last_offset BIGINT,
  rwbs VARCHAR,
  ino BIGINT,
  path VARCHAR,
  tid BIGINT,
  pid BIGINT,
  comm VARCHAR,
  process VARCHAR,
  cgroup VARCHAR,
  writers VARCHAR,
  writers_cgroup VARCHAR,
  origin VARCHAR,
  confidence VARCHAR,
  incomplete VARCHAR
);

CREATE OR REPLACE TABLE _syncline_columns_call(
  call_id BIGINT,
  ts_ns BIGINT,
  dur_ns BIGINT,
  tid BIGINT,
  pid BIGINT,
  comm VARCHAR,
  op VARCHAR,
  ret BIGINT,
  stack VARCHAR,
  sync_id BIGINT,
  unmatched BOOLEAN
);

CREATE OR REPLACE TABLE _syncline_columns_wait(
  sync_id BIGINT,
  number BIGINT,
  wait VARCHAR,
  ts_ns BIGINT,
  dur_ns BIGINT,
  transaction_id BIGINT,
  commit_id BIGINT
);

CREATE OR REPLACE TABLE _syncline_columns_phase(
  sync_id BIGINT,
  number BIGINT,
  phase VARCHAR,
  ts_ns BIGINT,
  dur_ns BIGINT
);

CREATE OR REPLACE TABLE _syncline_columns_journal(
  commit_id BIGINT,
  kind VARCHAR,
  ts_ns BIGINT,
  dur_ns BIGINT,
  tid BIGINT,
  pid BIGINT,
  comm VARCHAR,
  dev VARCHAR,
  transaction_id BIGINT,
  started_by VARCHAR,
  sync_id BIGINT,
  syncs BIGINT,
  status VARCHAR,
  reason VARCHAR,
  locking_ns BIGINT,
  flushing_ns BIGINT,
  logging_ns BIGINT,
  incomplete VARCHAR
);

CREATE OR REPLACE TABLE _syncline_columns_write_wait(
  wait_id BIGINT,
  ts_ns BIGINT,
  dur_ns BIGINT,
  tid BIGINT,
  pid BIGINT,
  comm VARCHAR,
  wait VARCHAR,
  dev VARCHAR,
  ino BIGINT,
  path VARCHAR,
  bytes BIGINT,
  transaction_id BIGINT,
  holder_tid BIGINT,
  holder_comm VARCHAR,
  confidence VARCHAR
);

CREATE OR REPLACE TABLE _syncline_columns_loss(
  reason VARCHAR,
  severity VARCHAR,
  count BIGINT,
  first_ts_ns BIGINT,
  last_ts_ns BIGINT,
  example VARCHAR,
  meaning VARCHAR
);

CREATE OR REPLACE TABLE _syncline_columns_mark(
  mark_id BIGINT,
  ts_ns BIGINT,
  dur_ns BIGINT,
  name VARCHAR
);

CREATE OR REPLACE TABLE _syncline_columns_meta(
  key VARCHAR,
  value VARCHAR
);
