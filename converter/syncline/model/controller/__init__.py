"""What sets the queue depth while a replay runs. One file each."""

from .base import Control, Controller
from .fixed import Fixed
from .paper import Paper

__all__ = ["Control", "Controller", "Fixed", "Paper"]
