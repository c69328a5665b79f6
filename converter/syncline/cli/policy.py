"""The policy of `syncline diff` and `syncline trend`: a file, or the defaults."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from syncline.cli.errors import Failure, say

if TYPE_CHECKING:
    from syncline.comparison.policy import Policy


def read_policy(path: str | None) -> Policy:
    """Returns the policy in the file `path`, or else in the current folder, or else the default.

    Raises:
        Failure: the file is not a policy.
    """
    from syncline.comparison import policy

    try:
        if path is not None:
            return policy.read(Path(path))
        here = Path(policy.FILE)
        if not here.is_file():
            return policy.Policy()
        say(f"policy: {here}")
        return policy.read(here)
    except policy.PolicyError as error:
        raise Failure(error.message, error.hint) from None
