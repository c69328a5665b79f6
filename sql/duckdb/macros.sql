-- What trace_processor has and DuckDB lacks, so that a report is one text for
-- both.

-- SQLite's percentile: p from 0 to 100, interpolated between neighbours.
CREATE OR REPLACE MACRO percentile(x, p) AS quantile_cont(x, p / 100.0);
