"""`harness bisect`: bisects releases, commits or whole environments, and finds the culprit."""
