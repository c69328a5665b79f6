-- Functions of trace_processor that DuckDB lacks, so that both engines run the
-- same text of a report.

-- SQLite's percentile: p from 0 to 100, interpolated between adjacent values.
CREATE OR REPLACE MACRO percentile(x, p) AS quantile_cont(x, p / 100.0);
