"""Writes the table of texts that hold no event into docs/reference/formats.md: `python -m tools.unread_page`."""

from __future__ import annotations

from pathlib import Path

from syncline.unread import KINDS

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "formats.md"
_BEGIN = "<!-- unread: written by `python -m tools.unread_page` -->\n"
_END = "<!-- unread: end -->\n"


def text() -> str:
    """Returns the page with the table."""
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    rows = "".join(
        f"| {kind.what} | {kind.answers} | {kind.lacks} | `{kind.record}` |\n" for kind in KINDS
    )
    head = "| text | it says | it does not say | what records it |\n|---|---|---|---|\n"
    return f"{before}{_BEGIN}{head}{rows}{_END}{after}"


if __name__ == "__main__":
    PAGE.write_text(text())
