# /// script
# requires-python = ">=3.11"
# dependencies = ["networkx"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.networkx]
# good = "3.3"
# bad = "3.6"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "ValueError"
# message = "the keys are"
#
# [tool.harness.known]
# kind = "changed default"
# upstream = ["https://networkx.org/documentation/stable/release/release_3.6.html"]
# last-good = "3.5"
# first-bad = "3.6"
# file = "networkx/readwrite/json_graph/node_link.py"
# function = "node_link_data"
# workaround = "Pass edges=\"links\"."
# ///
"""`node_link_data` writes the links of a graph as "edges" from networkx 3.6 on, where it was "links".

Whatever reads the JSON, D3 or an older networkx, finds no links.
"""

import networkx

keys = sorted(networkx.node_link_data(networkx.path_graph(3)))
if "links" not in keys:
    raise ValueError(f"the keys are {keys}")
