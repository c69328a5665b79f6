"""What `import syncline` offers. docs/guides/python.md shows it; everything else in the package may change without notice."""

from .answer import Answer
from .comparison import Comparison, diff
from .error import Error
from .run import Run, open, reports
from .table import Table

__all__ = ["Answer", "Comparison", "Error", "Run", "Table", "diff", "open", "reports"]
