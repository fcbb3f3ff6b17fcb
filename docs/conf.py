"""The documentation: pages in Markdown, a reference made from the code. `nox -s docs` builds it."""

import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from pygments.lexers.shell import BashLexer, BashSessionLexer
from pygments.token import Name, Number, Operator, Text
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "regression-harness"
author = "The regression-harness authors"
release = metadata.version("regression-harness")
version = release
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
    "tables_from_code",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "extensions"]
myst_enable_extensions = ["colon_fence", "deflist", "attrs_block"]
myst_heading_anchors = 3
nitpicky = False
smartquotes = False  # an example is typed as it stands: --run "x", without typographic quotes and dashes
default_role = "code"  # docstrings write names in single backticks
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

html_theme = "furo"
html_title = "regression-harness"
html_static_path = ["_static"]
html_show_copyright = False
html_css_files = ["site.css"]
html_theme_options = {
    "navigation_with_keys": True,
    # The colours of verdicts in the diagrams: text on the page's background, with a contrast of at least 4.5 to 1.
    "light_css_variables": {"good": "#18794e", "bad": "#c62a2f", "skip": "#8a6100"},
    "dark_css_variables": {"good": "#4cc38a", "bad": "#ff8589", "skip": "#f1c84b"},
}


class Command(BashLexer):
    """A command: transformers==4.52.4 is a word of it, not an assignment."""

    def get_tokens_unprocessed(self, *given: Any) -> Iterator[tuple[int, Any, str]]:
        """Yield the tokens."""
        for position, kind, value in super().get_tokens_unprocessed(*given):
            yield position, Text if kind in (Name.Variable, Number, Operator) else kind, value


class Session(BashSessionLexer):
    """Commands with what they print."""

    _innerLexerCls = Command  # noqa: N815 - of Pygments


def setup(app: Sphinx) -> None:
    """Let examples be highlighted so."""
    app.add_lexer("console", Session)
