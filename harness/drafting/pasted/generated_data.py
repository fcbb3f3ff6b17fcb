"""Generated data sets, audio and images in place of downloaded ones."""

import importlib
import math
from typing import Any

COLUMNS: dict[str, Any] = {}
_ROWS = 64  # for more steps than the usual ten between two lines of a log
_RATE_HZ = 16_000


def generated_dataset(name: Any = "", *_: Any, split: Any = None, streaming: bool = False, **__: Any) -> Any:
    """Return a data set with the columns that the script uses; without a split, one for each of three."""
    datasets: Any = importlib.import_module("datasets")
    columns = COLUMNS.get(str(name)) or COLUMNS[""]

    def rows() -> Any:
        is_large = any(word in column for column in columns for word in ("audio", "image"))
        count = _ROWS // 4 if is_large else _ROWS
        made = {column: [_value(column, number) for number in range(count)] for column in columns}
        one = datasets.Dataset.from_dict(made)
        return one.to_iterable_dataset() if streaming else one

    if split is None:
        kind = datasets.IterableDatasetDict if streaming else datasets.DatasetDict
        return kind({part: rows() for part in ("train", "validation", "test")})
    return [rows() for _ in split] if isinstance(split, (list, tuple)) else rows()


def generated_audio(*_: Any, **__: Any) -> Any:
    """Return a second of sound and its rate in hertz."""
    numpy: Any = importlib.import_module("numpy")
    return numpy.array(_tone(0), dtype="float32"), _RATE_HZ


def generated_image(*_: Any, **__: Any) -> Any:
    """Return a small image of random pixels."""
    numpy: Any = importlib.import_module("numpy")
    pixels = numpy.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype="uint8")
    return importlib.import_module("PIL.Image").fromarray(pixels)


def _tone(number: int) -> list[float]:
    hertz = 200.0 + 30.0 * number
    return [0.3 * math.sin(2 * math.pi * hertz * at / _RATE_HZ) for at in range(_RATE_HZ)]


def _value(column: str, number: int) -> Any:
    """One value of a column, by what its name means."""
    last = column.lower()
    text = f"row number {number} says a few words"
    turns = [{"role": "user", "content": text}, {"role": "assistant", "content": f"yes, {number}"}]
    if "audio" in last or last in ("speech", "array"):
        # A plain column instead of the Audio feature, because decoding that needs a codec library.
        return {"array": _tone(number), "sampling_rate": _RATE_HZ, "path": f"{number}.wav"}
    if "image" in last or last == "img":
        return generated_image()
    if last in ("messages", "conversations", "conversation"):
        return turns
    if last in ("label", "labels", "target", "intent", "coarse_label", "fine_label"):
        return number % 2
    if last in ("score", "similarity", "rating"):
        return number / _ROWS
    if last in ("tokens", "words"):
        return text.split()
    if last.endswith("tags"):
        return [word % 2 for word in range(len(text.split()))]
    if last == "answers":
        return {"text": ["few"], "answer_start": [text.index("few")]}
    if last in ("input_ids", "attention_mask", "token_type_ids"):
        return [1 + (number + at) % 20 if last == "input_ids" else int(last[0] == "a") for at in range(16)]
    if last == "translation":
        return {"en": text, "de": text, "fr": text, "ro": text}
    return text if last != "id" else str(number)
