# /// script
# requires-python = ">=3.11"
# dependencies = ["networkx", "scipy"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.networkx]
# good = "2.8.8"
# bad = "3.2.1"
# as-of = "none"
# hold = ["numpy<2", "scipy<1.12"]
#
# [tool.harness.signature]
# exception = "AttributeError"
# message = "module 'networkx' has no attribute 'to_scipy_sparse_matrix'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://networkx.org/documentation/stable/release/release_3.0.html"]
# last-good = "2.8.8"
# first-bad = "3.0"
# workaround = "to_scipy_sparse_array returns a sparse array."
# removed = "networkx.to_scipy_sparse_matrix"
# [tool.harness.known.seen]
# release = "3.0"
# error = "AttributeError: module 'networkx' has no attribute 'to_scipy_sparse_matrix'"
# ///
"""`networkx.to_scipy_sparse_matrix` is an AttributeError from networkx 3.0 on."""

import networkx

print(networkx.to_scipy_sparse_matrix(networkx.path_graph(3)))
