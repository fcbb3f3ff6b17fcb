"""The levels of a culprit: package, its release, file, region, commit; each proved in both directions if possible."""
