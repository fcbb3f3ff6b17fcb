# /// script
# requires-python = ">=3.11"
# dependencies = ["networkx==3.3"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.made]
# with = ["networkx"]
#
# [tool.harness.made.subjects.networkx]
# good = "3.4"
# bad = "3.6"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "KeyError"
# message = "'links'"
#
# [tool.harness.known]
# kind = "changed default"
# upstream = ["https://networkx.org/documentation/stable/release/release_3.6.html"]
# written = true
# last-good = "3.5"
# first-bad = "3.6"
# depth = "release"
# workaround = "Write with node_link_data(graph, edges='links')."
# [tool.harness.known.seen]
# release = "3.6"
# error = "KeyError: 'links'"
# ///
"""Node-link JSON that networkx 3.6 wrote can't be read by networkx 3.3."""

import json
import os
import tempfile
from pathlib import Path

import networkx as nx

step = os.environ.get("HARNESS_STEP")
file = Path(os.environ.get("HARNESS_ARTIFACTS") or tempfile.mkdtemp()) / "graph.json"

if step != "use":
    file.write_text(json.dumps(nx.node_link_data(nx.path_graph(3))))
if step != "make":
    print(nx.node_link_graph(json.loads(file.read_text())).edges)
