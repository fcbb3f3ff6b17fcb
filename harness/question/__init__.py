"""What is asked: repro files, projects and their requirements, days, releases to try, ends, other packages."""
