# /// script
# requires-python = ">=3.11"
# dependencies = ["torch", "transformers==4.46.3", "sentence-transformers"]
#
# [tool.harness]
# device = "cpu"
# timeout = 300
#
# [tool.harness.subjects.sentence-transformers]
# good = "2.6.1"
# bad = "3.2.1"
# as-of = "none"
# hold = ["torch==2.13.0", "numpy<2.3"]
#
# [tool.harness.signature]
# exception = "TypeError"
# message = "'>' not supported between instances of 'dict' and 'float'"
#
# [tool.harness.known]
# kind = "changed output"
# upstream = ["https://github.com/huggingface/sentence-transformers/releases/tag/v3.0.0"]
# last-good = "2.7.0"
# first-bad = "3.0.0"
# file = "sentence_transformers/evaluation/EmbeddingSimilarityEvaluator.py"
# function = "EmbeddingSimilarityEvaluator.__call__"
# workaround = "Take the score out of the result: results[evaluator.primary_metric]."
# ///
"""An evaluator of sentence-transformers returns a dictionary of scores from 3.0.0 on, where it returned one number.

A loop of one's own that keeps the best model compares it with the best score so far.
"""

from sentence_transformers import SentenceTransformer, models
from sentence_transformers.evaluation import EmbeddingSimilarityEvaluator

first, second = ["good", "good", "bad"], ["good", "good bad", "good"]
model = SentenceTransformer(modules=[models.BoW(["good", "bad"]), models.Dense(2, 2)], device="cpu")
score = EmbeddingSimilarityEvaluator(first, second, [1.0, 0.5, 0.0])(model)
print(score, score > 0.0)
