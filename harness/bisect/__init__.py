"""`harness bisect`: from a plan to an answer that names the release and what in it made the difference."""
