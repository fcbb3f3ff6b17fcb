"""The levels below a release: package, release of that package, file, region; each shown both ways where it can be."""
