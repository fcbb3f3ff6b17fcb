"""From a question to what can be tried: releases, ends, other packages."""
