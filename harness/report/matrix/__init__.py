"""The page of a matrix."""
