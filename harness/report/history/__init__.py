"""The page of a history."""
