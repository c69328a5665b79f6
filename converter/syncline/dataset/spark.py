"""Apache Spark as an engine: the same SQL as DuckDB's, translated when it is run."""

from __future__ import annotations

import itertools
import logging
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from syncline import interruptible, scratch
from syncline.engine import EngineError, Result, SqlError
from syncline.engine.attach import FACTS, VIEWS
from syncline.engine.expanded import expanded
from syncline.engine.file_columns import FILE_COLUMNS
from syncline.engine.run_files import TABLES
from syncline.errors import InputError
from syncline.report.catalogue import read_sql

from . import index, spark_sql
from .index import Selection
from .spark_sql import package, type_of
from .store import Store, is_url, open_store
from .tables import by_columns, facts_of_tables, files_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from sqlglot import exp

__all__ = ["Session", "SparkEngine", "is_master", "open_spark", "session"]

_Result = TypeVar("_Result")
_Value = TypeVar("_Value")

_MASTER = re.compile(r"local\[.+\]|spark://.+")
_LOCAL = ("127.0.0.1", "localhost")
# Lines of a message of Spark that are of its plan or its Java stack.
_DETAILS = ("JVM stacktrace", "org.apache.", "java.", "== SQL", "\tat ", "'")


def is_master(name: str) -> bool:
    """Returns whether a name is that of a Spark master."""
    return _MASTER.fullmatch(name) is not None


@dataclass(frozen=True)
class Session:
    """A running session."""

    spark: SparkSession
    master: str

    def map(self, task: Callable[[_Value], _Result], values: list[_Value]) -> list[_Result]:
        """Returns the result of a task for each value. Spark repeats the tasks of a worker that died.

        Raises:
            EngineError: a task failed several times.
        """
        context = self.spark.sparkContext
        try:
            return interruptible.call(
                lambda: context.parallelize(values, len(values)).map(task).collect(),
                cancel=context.cancelAllJobs,
            )
        except Exception as error:
            raise EngineError(
                f"Spark at {self.master}: {_reason(error)}",
                "check that all workers have this version of syncline, and repeat the command",
            ) from None


@contextmanager
def session(master: str) -> Iterator[Session]:
    """Yields a session of Spark, and stops it afterwards.

    Raises:
        EngineError: pyspark or Java is missing, or the master does not answer.
    """
    sql = package("pyspark.sql")
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise EngineError("Spark needs Java 17 or later, and no java is on PATH", "set JAVA_HOME")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        # `run=0012` stays a text.
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        # It plans each report here, and puts the text of a table in each place that reads it: 1 GB is too little for bystanders.
        "spark.driver.memory": "4g",
        # Names are resolved from the inside out, and the texts of views are nested in each other: 100 rounds are too few for `neighbours`.
        "spark.sql.analyzer.maxIterations": "1000",
        # A sum that is too large is an error, not another number.
        "spark.sql.ansi.enabled": "true",
        "spark.ui.showConsoleProgress": "false",
        # Spark 4.3 fails with it on a table that is used twice. `--where` has chosen the partitions.
        "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
        "spark.driver.extraJavaOptions": "-Dlog4j2.level=error",
        # A master that does not answer.
        "spark.network.timeout": "120s",
    }
    host = master.removeprefix("spark://").partition(":")[0]
    if master.startswith("local") or host in _LOCAL:
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = sql.SparkSession.builder.master(master).appName("syncline")
    for key, value in settings.items():
        builder = builder.config(key, value)
    # PySpark logs each error of SQL with its Java stack.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    with scratch.folder() as folder:
        noise = folder / "stderr"
        try:
            with _stderr_to(noise):
                spark = interruptible.call(builder.getOrCreate)
        except Exception as error:
            said = [line for line in noise.read_text(errors="replace").splitlines() if line.strip()]
            raise EngineError(
                f"Spark at {master} cannot be used: {_reason(error)}"
                + (f" ({said[-1].strip()})" if said else ""),
                "check that the master runs and that this machine reaches it",
            ) from None
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield Session(spark, master)
    finally:
        spark.stop()


@contextmanager
def _stderr_to(file: Path) -> Iterator[None]:
    """Gives programs that are started meanwhile another stderr: the one of Spark is for its developers."""
    sys.stderr.flush()
    kept = os.dup(2)
    target = os.open(file, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.dup2(target, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(target)
        os.close(kept)


@contextmanager
def open_spark(url: str, where: str | None, master: str) -> Iterator[SparkEngine]:
    """Opens the runs of a dataset that pass `where`, with Spark.

    Raises:
        InputError: it is not a dataset, or no run passes.
        EngineError: Spark cannot be used.
    """
    root, run = index.split(url)
    if is_url(root):
        raise InputError(
            f"{url}: Spark reads datasets of a file system that all its workers mount",
            "leave out --engine: DuckDB reads object stores",
        )
    store = open_store(root)
    selection = index.select(store, where, [run] if run else None)
    package("sqlglot")
    with session(master) as running:
        engine = SparkEngine(running.spark, store.url, tuple(selection.left_out))
        engine.attach(store, selection)
        yield engine


class SparkEngine:
    """Spark with the tables of a dataset."""

    name = "spark"
    is_dataset = True

    def __init__(self, spark: SparkSession, path: str, left_out: tuple[str, ...] = ()) -> None:
        self.path: Any = path
        self.left_out = left_out
        self.version = f"v{spark.version}"
        self._spark = spark

    def attach(self, store: Store, selection: Selection) -> None:
        """Creates the tables as temporary views."""
        types = self._types()
        entries = selection.entries
        for table in TABLES:
            self._view(
                f"_syncline_file_{table}", self._files(store, selection, table, types[table])
            )
        lacks, logs = facts_of_tables(entries)
        rows = {"_syncline_lacks": lacks, "_syncline_log": [[run, None, has] for run, has in logs]}
        for name, columns in FACTS.items():
            schema = ", ".join(f"{column} STRING" for column in columns)
            self._view(name, self._spark.createDataFrame(rows[name], schema))
        for name in VIEWS:
            self.query(read_sql("tables/duckdb", name))
        self._create_runs(selection)

    def _types(self) -> dict[str, dict[str, str]]:
        """Returns the columns of the files and their types in Spark, by table."""
        of = package("sqlglot").exp.DataType.build
        return {
            table: {name: type_of(of(kind, dialect="duckdb")) for name, kind in columns.items()}
            for table, columns in FILE_COLUMNS.items()
        }

    def _files(
        self, store: Store, selection: Selection, table: str, types: dict[str, str]
    ) -> DataFrame:
        parts = []
        for columns, entries in by_columns(selection.entries, table):
            reader = self._spark.read.option("basePath", store.root)
            frame = reader.parquet(*files_of(store, entries, table))
            parts.append(
                frame.selectExpr(
                    *(
                        f"CAST({f'`{name}`' if name in columns else 'NULL'} AS {kind}) AS `{name}`"
                        for name, kind in types.items()
                    ),
                    "run",
                )
            )
        if not parts:
            schema = ", ".join(f"`{name}` {kind}" for name, kind in types.items())
            return self._spark.createDataFrame([], f"{schema}, run STRING")
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.unionByName(part)
        return whole

    def _create_runs(self, selection: Selection) -> None:
        glot = package("sqlglot")
        (statement,) = (
            one for one in glot.parse(read_sql("commands/dataset", "run"), read="duckdb") if one
        )
        columns = {column.name: type_of(column.kind) for column in statement.this.expressions}
        facts = sorted({key for entry in selection.entries for key in entry.facts})
        rows = [index.row_of(entry, list(columns), facts) for entry in selection.entries]
        texts = [*columns, *facts]
        schema = ", ".join(
            f"`{name}` {'STRING' if columns.get(name, 'STRING') == 'DATE' else columns.get(name, 'STRING')}"
            for name in texts
        )
        frame = self._spark.createDataFrame(rows, schema)
        casts = [
            f"CAST(`{name}` AS DATE) AS `{name}`" if columns.get(name) == "DATE" else f"`{name}`"
            for name in texts
        ]
        self._view("syncline_run", frame.selectExpr(*casts))

    def _view(self, name: str, frame: DataFrame) -> None:
        frame.createOrReplaceTempView(name)

    def query(self, sql: str) -> Result:
        """Runs one or more statements of DuckDB's SQL, and returns the rows of the last one.

        Raises:
            SqlError: the SQL is wrong, or has no translation.
            EngineError: Spark cannot run it.
        """
        result = Result([], [])
        for statement in spark_sql.parsed(expanded(sql, "spark")):
            try:
                result = interruptible.call(
                    lambda statement=statement: self._run(statement),
                    cancel=self._spark.sparkContext.cancelAllJobs,
                )
            except Exception as error:
                kind = type(error).__name__
                if kind in ("AnalysisException", "ParseException"):
                    raise SqlError(_reason(error)) from None
                raise EngineError(f"{self.path}: Spark: {_reason(error)}") from error
        return result

    def _run(self, statement: exp.Expression) -> Result:
        if step := spark_sql.step_of(statement):
            return self._step(step, statement.args.get("expression"))
        self._unroll_all(statement)
        return self._rows(spark_sql.written(statement))

    def _step(self, name: str, query: exp.Expression | None) -> Result:
        """Computes the table of a step, and keeps it on the workers, or removes it if there is no query."""
        if query is None:
            self._spark.catalog.dropTempView(name)
            return Result([], [])
        self._unroll_all(query)
        # Unlike that of a cached table, its plan is not a part of the plans that read it.
        self._view(name, self._spark.sql(spark_sql.written(query)).localCheckpoint())
        return Result([], [])

    def _unroll_all(self, statement: exp.Expression) -> None:
        for cte in spark_sql.tables(statement):
            if self._is_unrolled(cte):
                self._unroll(cte)

    def _is_unrolled(self, cte: exp.CTE) -> bool:
        """Returns whether it is a recursive table that keeps each row once, which Spark's SQL cannot compute."""
        exp = package("sqlglot").exp
        with_: Any = cte.parent
        return bool(
            with_.recursive and isinstance(cte.this, exp.Union) and cte.this.args.get("distinct")
        )

    def _unroll(self, cte: exp.CTE) -> None:
        """Computes a recursive table that keeps each row once, step by step.

        Each step has the rows that the rows of the step before lead to, without those that are known.
        """
        exp = package("sqlglot").exp
        with_: Any = cte.parent
        body, name = cte.this, cte.alias
        before = list(itertools.takewhile(lambda one: one is not cte, with_.expressions))
        columns = [column.name for column in cte.args["alias"].columns]

        def frame(
            query: Any, before: list[Any] = before, columns: list[str] = columns
        ) -> DataFrame:
            own = spark_sql.written(query)
            text = ", ".join(map(spark_sql.written, before))
            text = f"WITH {text} {own}" if text else own
            found = self._spark.sql(text)
            return found.toDF(*columns) if columns else found

        step = body.expression.copy()
        for table in step.find_all(exp.Table):
            if table.name == name:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(table.alias_or_name)))
                table.set("this", exp.to_identifier(f"_{name}_last"))
        # Read by each step, and small.
        for table in {one.name for one in step.find_all(exp.Table)} & {one.alias for one in before}:  # fmt: skip
            query = exp.select("*").from_(table)
            self._view(f"_{name}_{table}", self._computed(frame(query, columns=[])))
            for one in step.find_all(exp.Table):
                if one.name == table:
                    one.set("alias", exp.TableAlias(this=exp.to_identifier(table)))
                    one.set("this", exp.to_identifier(f"_{name}_{table}"))
        known = self._computed(frame(body.this).distinct())
        last = known
        while not last.isEmpty():
            self._view(f"_{name}_last", last)
            last = self._computed(frame(step, []).distinct().subtract(known))
            known = self._computed(known.union(last))
        self._view(f"_{name}_all", known)
        cte.set("this", exp.select("*").from_(f"_{name}_all"))

    def _computed(self, frame: DataFrame) -> DataFrame:
        """Computes a small table, so that what reads it does not compute it again.

        Its rows become a part of the SQL. Spark would start a process of Python to take them as objects.
        """
        exp = package("sqlglot").exp
        rows = [[exp.convert(value).sql("spark") for value in row] for row in frame.collect()]
        width = len(frame.columns)
        values = ", ".join(f"({', '.join(row)})" for row in rows or [["NULL"] * width])
        casts = ", ".join(
            f"CAST(col{number} AS {field.dataType.simpleString()}) AS `{field.name}`"
            for number, field in enumerate(frame.schema.fields, 1)
        )
        found = self._spark.sql(f"SELECT {casts} FROM VALUES {values}")
        return found if rows else found.limit(0)

    def _rows(self, statement: str) -> Result:
        frame = self._spark.sql(statement)
        columns = list(frame.columns)
        return Result(columns, [tuple(map(_plain, row)) for row in frame.collect()])

    def stats(self) -> list[tuple[str, str, int]]:
        """Returns what the engine could not import: nothing, because a table is read as a whole."""
        return []


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if value is None or isinstance(value, int | float | str | bytes):
        return value
    return str(value)


def _reason(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(_DETAILS)]
    return " ".join((kept or lines or [type(error).__name__])[:2])[:500]
