# /// script
# requires-python = ">=3.11"
# dependencies = ["transformers"]
#
# [tool.harness]
# device = "cpu"
# timeout = 120
#
# [tool.harness.subjects.transformers]
# good = "4.31.0"
# bad = "4.36.2"
# as-of = "none"
# hold = ["numpy<2", "huggingface-hub<0.26"]
#
# [tool.harness.signature]
# exception = "AttributeError"
# message = "object has no attribute 'letters'"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/huggingface/transformers/pull/23909", "https://github.com/huggingface/transformers/issues/26777"]
# last-good = "4.33.3"
# first-bad = "4.34.0"
# pull-request = "https://github.com/huggingface/transformers/pull/23909"
# file = "transformers/tokenization_utils.py"
# function = "PreTrainedTokenizer.__init__"
# depth = "release"
# workaround = "Set the vocabulary before super().__init__(); for code that is not yours, hold transformers<4.34."
# [tool.harness.known.seen]
# release = "4.34.0"
# error = "AttributeError: 'Letters' object has no attribute 'letters'"
# frames = ["transformers/tokenization_utils.py:__init__", "transformers/tokenization_utils.py:_add_tokens"]
# ///
"""A tokenizer that sets its vocabulary after `super().__init__()` is an AttributeError from transformers 4.34.0 on.

`PreTrainedTokenizer.__init__` asks for the vocabulary since then. The tokenizers of ChatGLM, Baichuan and others, which
ship their code with their weights, stopped loading.
"""

from transformers import PreTrainedTokenizer


class Letters(PreTrainedTokenizer):
    """A tokenizer of three letters."""

    def __init__(self, **options):
        super().__init__(**options)
        self.letters = {"a": 0, "b": 1, "c": 2}

    @property
    def vocab_size(self):
        """The number of letters."""
        return len(self.letters)

    def get_vocab(self):
        """The letters and their ids."""
        return dict(self.letters)

    def _tokenize(self, text, **options):
        return list(text)

    def _convert_token_to_id(self, token):
        return self.letters[token]


print(Letters(pad_token="a")("abc").input_ids)
