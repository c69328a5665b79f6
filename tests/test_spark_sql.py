"""What means something else in Spark is translated. `make spark-test` compares Spark's own rows."""

from __future__ import annotations

from syncline.dataset import spark_sql


def test_no_mark_is_left_for_spark() -> None:
    for sql in (
        "SELECT (WITH i AS MATERIALIZED (SELECT 1 AS x) SELECT SUM(i.x) FROM i)",
        "CREATE VIEW v AS WITH a AS NOT MATERIALIZED (SELECT 1 AS x), b AS MATERIALIZED (SELECT 2 AS x) SELECT * FROM a JOIN b USING (x)",
    ):
        (text,) = spark_sql.translate(sql)
        assert "MATERIALIZED" not in text


def test_what_means_something_else_in_spark_is_changed() -> None:
    (text,) = spark_sql.translate("SELECT percentile(x, 99.9), 1.5 * y, COUNT(*) OVER w - 1 FROM t WINDOW w AS (ORDER BY x)")  # fmt: skip
    assert "PERCENTILE(x, CAST(99.9 AS DOUBLE) / 100)" in text
    assert "CAST(1.5 AS DOUBLE)" in text
    assert "(COUNT(*) OVER w) - 1" in text


def test_two_tables_of_one_name_stay_where_they_are() -> None:
    """Each use of a macro has its own. At the top, Spark refuses the second one of a name."""
    sql = (
        "SELECT * FROM (WITH a AS (SELECT 1 AS x) SELECT * FROM a) AS q"
        " JOIN (WITH a AS (SELECT 2 AS x) SELECT * FROM a) AS r USING (x)"
    )
    assert spark_sql.translate(sql) == [sql]


def test_a_window_of_lead_has_no_frame() -> None:
    frame = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    (text,) = spark_sql.translate(
        f"SELECT LEAD(x) OVER w - x, SUM(x) OVER w, LAG(x) OVER (ORDER BY x {frame}) FROM t"
        f" WINDOW w AS (PARTITION BY y ORDER BY x {frame})"
    )
    assert text == (
        "SELECT (LEAD(x) OVER (PARTITION BY y ORDER BY x NULLS LAST)) - x, SUM(x) OVER w,"
        " LAG(x) OVER (ORDER BY x NULLS LAST) FROM t"
        f" WINDOW w AS (PARTITION BY y ORDER BY x NULLS LAST {frame})"
    )
