# /// script
# requires-python = ">=3.11"
# dependencies = ["typer==0.15.2", "click"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.click]
# good = "8.1.8"
# bad = "8.2.1"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "TypeError"
# message = "TyperArgument.make_metavar() takes 1 positional argument but 2 were given"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/mkdocs/mkdocs-click/issues/89", "https://click.palletsprojects.com/en/stable/changes/"]
# last-good = "8.1.8"
# first-bad = "8.2.0"
# workaround = "Install typer 0.15.4 or later, or hold click<8.2."
# file = "click/core.py"
# depth = "release"
# [tool.harness.known.seen]
# release = "8.2.0"
# error = "TypeError: TyperArgument.make_metavar() takes 1 positional argument but 2 were given"
# frames = ["click/core.py:get_help", "typer/core.py:format_help", "typer/rich_utils.py:rich_format_help", "click/core.py:get_usage", "click/core.py:format_usage", "click/core.py:collect_usage_pieces", "click/core.py:get_usage_pieces"]
# ///
"""The help of a program with an argument and typer 0.15.2 is a TypeError from click 8.2.0 on."""

import typer

app = typer.Typer()


@app.command()
def greet(name: str):
    """Greet somebody."""
    print(name)


app(["--help"], standalone_mode=False)
