"""DuckDB's SQL as that of Spark: sqlglot translates it when it is run."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from syncline.engine import EngineError, SqlError
from syncline.engine.staged import STEP

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["package", "parsed", "step_of", "tables", "translate", "type_of", "written"]


def package(name: str, what: str = "Spark") -> Any:
    """Returns a package that only Spark needs.

    Raises:
        EngineError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise EngineError(
            f"{what} needs the Python packages pyspark and sqlglot", "pip install 'syncline[spark]'"
        ) from None


def type_of(kind: Any) -> str:
    """Returns a type of DuckDB in Spark, which has no unsigned integers."""
    kind = str(kind.sql("spark"))
    return "DECIMAL(20, 0)" if kind == "UBIGINT" else kind


def translate(sql: str) -> list[str]:
    """Translates DuckDB's SQL to Spark's.

    Raises:
        SqlError: the SQL cannot be parsed, or is no query and no view.
    """
    return [written(statement) for statement in parsed(sql)]


def written(expression: exp.Expression) -> str:
    """Returns the text of an expression for Spark, with each WITH where it stands.

    sqlglot would move all of them to the top, where two uses of one macro have tables of the same names.
    """
    dialect = package("sqlglot").Dialect.get_or_raise("spark")
    generator = type(
        "Generator", (dialect.generator_class,), {"EXPRESSIONS_WITHOUT_NESTED_CTES": set()}
    )
    return str(generator(dialect=dialect).generate(expression))


def parsed(sql: str) -> list[exp.Expression]:
    """Parses DuckDB's SQL, and changes what means something else in Spark.

    Raises:
        SqlError: the SQL cannot be parsed, or is no query and no view.
    """
    glot = package("sqlglot")
    try:
        found = glot.parse(sql, read="duckdb")
    except glot.errors.ParseError as error:
        raise SqlError(str(error).partition("\n")[0]) from None
    return [_adapted(glot.exp, one) for one in found if one is not None]


def _adapted(exp: Any, statement: exp.Expression) -> exp.Expression:
    """Changes SQL that means something else in Spark, and that sqlglot leaves unchanged."""
    if step_of(statement):
        # Spark has no temporary tables: the engine computes it, and keeps it as a view.
        pass
    elif isinstance(statement, exp.Create):
        if statement.kind != "VIEW":
            raise SqlError(f"CREATE {statement.kind} is not allowed", "Spark only reads a dataset")
        properties = exp.Properties(expressions=[exp.TemporaryProperty()])
        statement.set("properties", properties)
    elif not isinstance(statement, exp.Query):
        raise SqlError(f"{statement.key.upper()} is not allowed", "Spark only reads a dataset")
    for node in [*statement.find_all(exp.DataType)]:
        if node.this == exp.DataType.Type.INT128:
            node.replace(exp.DataType.build("DECIMAL(38, 0)"))
    for node in statement.find_all(exp.CTE):
        # How an engine runs it, not what it means.
        node.set("materialized", None)
    for node in statement.find_all(exp.Window):
        if isinstance(node.this, (exp.Lead, exp.Lag)):
            _leave_out_frame(exp, node)
    for node in [*statement.find_all(exp.Window)]:
        if isinstance(node.parent, exp.Sub):
            # `OVER w - x` is one name to Spark.
            node.replace(exp.paren(node.copy()))
    for node in [*statement.find_all(exp.Literal)]:
        if not node.is_string and "." in node.this:
            # Spark reads 0.5 as a decimal, whose quotients have few digits.
            node.replace(exp.cast(node.copy(), "double"))
    for node in [*statement.find_all(exp.Anonymous)]:
        if node.name.lower() == "percentile":
            # The macro of sql/tables/duckdb/macros.sql. Spark's function takes a share.
            share = node.expressions[1]
            share.replace(exp.Div(this=exp.cast(share.copy(), "double"), expression=exp.Literal.number(100)))  # fmt: skip
    return statement


def step_of(statement: exp.Expression) -> str:
    """Returns the name of the table that a step of Syncline's own SQL creates or removes; empty for another statement."""
    exp = package("sqlglot").exp
    if not isinstance(statement, exp.Create | exp.Drop) or statement.kind != "TABLE":
        return ""
    name = str(statement.find(exp.Table).name)
    return name if name.startswith(STEP) else ""


def _leave_out_frame(exp: Any, node: Any) -> None:
    """Removes the frame of a window of LEAD or LAG. Others ignore it there, and Spark refuses it."""
    node.set("spec", None)
    if name := node.args.get("alias"):
        select = node.find_ancestor(exp.Select)
        for named in select.args.get("windows") or ():
            if named.name.lower() == name.name.lower() and named.args.get("spec"):
                for key in ("alias", "partition_by", "order"):
                    value = named.args.get(key)
                    copies = [one.copy() for one in value] if isinstance(value, list) else value and value.copy()  # fmt: skip
                    node.set(key, copies)


def tables(statement: exp.Expression) -> list[exp.CTE]:
    """Returns the tables of the statement's own WITH, in their order."""
    with_ = statement.args.get("with_") or statement.args.get("with")
    return list(with_.expressions) if with_ else []
