# /// script
# requires-python = ">=3.11"
# dependencies = ["torch", "transformers==4.56.2", "sentence-transformers"]
#
# [tool.harness]
# device = "cpu"
# timeout = 300
#
# [tool.harness.made]
# with = ["sentence-transformers==5.0.0"]
#
# [tool.harness.subjects.sentence-transformers]
# good = "5.0.0"
# bad = "5.1.2"
# as-of = "none"
# hold = ["torch==2.13.0", "numpy<2.3"]
#
# [tool.harness.signature]
# exception = "AttributeError"
# message = "'Transformer' object has no attribute 'model_forward_params'"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/huggingface/sentence-transformers/issues/3523"]
# last-good = "5.1.0"
# first-bad = "5.1.1"
# file = "sentence_transformers/models/Transformer.py"
# function = "Transformer.forward"
# workaround = "Keep models with save_pretrained instead of pickle; for one that is pickled, hold sentence-transformers<5.1.1."
# [tool.harness.known.seen]
# release = "5.1.1"
# error = "AttributeError: 'Transformer' object has no attribute 'model_forward_params'"
# frames = ["sentence_transformers/SentenceTransformer.py:encode", "sentence_transformers/SentenceTransformer.py:forward", "sentence_transformers/models/Transformer.py:forward"]
# ///
"""A model that sentence-transformers 5.0 pickled can't encode with 5.1.1, which reads an attribute that it sets itself.

The model is a BERT of random weights with a tokenizer of three words.
"""

import os
import pickle
import tempfile
from pathlib import Path

from sentence_transformers import SentenceTransformer, models
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

step = os.environ.get("HARNESS_STEP")
folder = Path(os.environ.get("HARNESS_ARTIFACTS") or tempfile.mkdtemp())

if step != "use":
    words = Tokenizer(WordLevel({"[PAD]": 0, "[UNK]": 1, "hello": 2}, unk_token="[UNK]"))
    PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(folder)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    BertModel(BertConfig(vocab_size=3, max_position_embeddings=16, **sizes)).save_pretrained(folder)
    bert = models.Transformer(str(folder))
    model = SentenceTransformer(modules=[bert, models.Pooling(8)], device="cpu")
    (folder / "model.pickle").write_bytes(pickle.dumps(model))
if step != "make":
    print(pickle.loads((folder / "model.pickle").read_bytes()).encode("hello"))
