"""The levels below a release: package, its release, file, region; each shown both ways if possible."""
