# /// script
# requires-python = ">=3.11"
# dependencies = ["openai==1.55.2", "httpx"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.httpx]
# good = "0.27.2"
# bad = "0.28.1"
# as-of = "none"
#
# [tool.harness.signature]
# exception = "TypeError"
# message = "got an unexpected keyword argument 'proxies'"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/openai/openai-python/issues/1902", "https://github.com/encode/httpx/blob/master/CHANGELOG.md"]
# last-good = "0.27.2"
# first-bad = "0.28.0"
# file = "httpx/_client.py"
# function = "Client.__init__"
# workaround = "Install openai 1.55.3 or later, or hold httpx<0.28."
# fix = "openai 1.55.3 no longer passes the argument."
# [tool.harness.known.seen]
# release = "0.28.0"
# error = "TypeError: Client.__init__() got an unexpected keyword argument 'proxies'"
# frames = ["openai/_client.py:__init__", "openai/_base_client.py:__init__"]
# ///
"""`OpenAI()` (openai 1.55.2 and before) is a TypeError from httpx 0.28.0 on, which dropped the argument `proxies`."""

from openai import OpenAI

print(OpenAI(api_key="none").base_url)
