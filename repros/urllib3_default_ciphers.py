# /// script
# requires-python = ">=3.11"
# dependencies = ["urllib3"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.urllib3]
# good = "1.26.15"
# bad = "2.0.7"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "ImportError"
# message = "cannot import name 'DEFAULT_CIPHERS' from 'urllib3.util.ssl_'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://github.com/boto/botocore/issues/2926", "https://urllib3.readthedocs.io/en/stable/v2-migration-guide.html"]
# last-good = "1.26.20"
# first-bad = "2.0.2"
# workaround = "Hold urllib3<2, as botocore asks for, or install botocore 1.32 or later."
# [tool.harness.known.seen]
# release = "2.0.2"
# error = "ImportError: cannot import name 'DEFAULT_CIPHERS' from 'urllib3.util.ssl_' (urllib3/util/ssl_.py)"
# ///
"""`DEFAULT_CIPHERS` is gone from urllib3 2 on (2.0.0 and 2.0.1 are yanked); botocore 1.29 and others import it."""

from urllib3.util.ssl_ import DEFAULT_CIPHERS

print(DEFAULT_CIPHERS)
