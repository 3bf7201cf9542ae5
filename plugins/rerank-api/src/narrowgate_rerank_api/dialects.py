"""How the servers of the `/rerank` family differ in what they are sent: one row for each. No input or output.

What they answer differs too, but one reader serves them all (`narrowgate_rerank_api.replies`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import attrs


@attrs.frozen(kw_only=True)
class Dialect:
    """One server's way to ask. A field in a table of the body is written with a dot: `input.documents`.

    Attributes:
        name: the value of the setting `dialect`.
        version: version segment of the route; nothing for servers without one.
        operation: the rest of the route.
        base_url: the vendor's address; nothing for servers that everybody runs on their own.
        key: the variable that usually holds the vendor's credential.
        model: whether a model must, may or cannot be named.
        query: field of the query.
        documents: field of the texts.
        wrapped: a text is sent as `{"text": ...}`.
        cut: field for the number of results wanted, or `None`. It is sent as the number of documents: every score is wanted,
            and servers differ in how many they give unasked.
        echo: field that asks for the texts back, or `None`; sent as false.
        fixed: further fields that are always sent.
        options: the table that an operator's own fields go into; nothing for the top of the body.
        max_documents: the most documents that a request may have, or `None` for no documented limit.
        max_bytes: the longest request body, or `None` likewise.
    """

    name: str
    version: str = "v1"
    operation: str = "rerank"
    base_url: str = ""
    key: str = ""
    model: Literal["required", "optional", "absent"] = "required"
    query: str = "query"
    documents: str = "documents"
    wrapped: bool = False
    cut: str | None = "top_n"
    echo: str | None = None
    fixed: Mapping[str, Any] = attrs.field(factory=dict)
    options: str = ""
    max_documents: int | None = None
    max_bytes: int | None = None

    def body(
        self, model: str | None, query: str, documents: Sequence[str], options: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the body of a request.

        Args:
            model: the model to name, or `None`.
            query: the query's text.
            documents: the texts, at least one.
            options: an operator's own fields; none of them has the name of a field of ours.
        """
        made: dict[str, Any] = {} if model is None else {"model": model}
        _put(made, self.query, {"text": query} if self.wrapped else query)
        _put(made, self.documents, [{"text": text} for text in documents] if self.wrapped else list(documents))
        if self.cut is not None:
            _put(made, self.cut, len(documents))
        if self.echo is not None:
            _put(made, self.echo, value=False)
        for name, value in {**self.fixed, **(options or {})}.items():
            _put(made, f"{self.options}.{name}" if self.options else name, value)
        return made


def _put(body: dict[str, Any], place: str, value: Any) -> None:
    *tables, name = place.split(".")
    for table in tables:
        body = body.setdefault(table, {})
    body[name] = value


_ROWS: Final = (
    Dialect(name="standard", model="optional"),
    Dialect(name="cohere", version="v2", base_url="https://api.cohere.com", key="CO_API_KEY", max_documents=1000),
    Dialect(
        name="cohere-v1",
        base_url="https://api.cohere.com",
        key="CO_API_KEY",
        echo="return_documents",
        max_documents=1000,
    ),
    Dialect(name="jina", base_url="https://api.jina.ai", key="JINA_API_KEY", echo="return_documents"),
    Dialect(
        name="voyage",
        base_url="https://api.voyageai.com",
        key="VOYAGE_API_KEY",
        cut="top_k",
        echo="return_documents",
        max_documents=1000,
    ),
    # Without the truncation a single long text makes vLLM refuse the whole request.
    Dialect(name="vllm", fixed={"truncate_prompt_tokens": -1}),
    # As above for `truncate`; the limits are the server's defaults (--max-client-batch-size, --payload-limit).
    Dialect(
        name="tei",
        version="",
        model="absent",
        documents="texts",
        cut=None,
        echo="return_text",
        fixed={"truncate": True},
        max_documents=32,
        max_bytes=2_000_000,
    ),
    Dialect(name="llama.cpp", model="optional"),
    Dialect(name="infinity", version="", echo="return_documents", max_documents=2048),
    Dialect(name="siliconflow", base_url="https://api.siliconflow.cn", key="SILICONFLOW_API_KEY", echo="return_documents"),
    Dialect(
        name="dashscope",
        version="api/v1",
        operation="services/rerank/text-rerank/text-rerank",
        base_url="https://dashscope.aliyuncs.com",
        key="DASHSCOPE_API_KEY",
        query="input.query",
        documents="input.documents",
        cut="parameters.top_n",
        echo="parameters.return_documents",
        options="parameters",
        max_documents=500,
    ),
    Dialect(
        name="dashscope-compatible",
        version="compatible-api/v1",
        operation="reranks",
        base_url="https://dashscope.aliyuncs.com",
        key="DASHSCOPE_API_KEY",
        max_documents=500,
    ),
    Dialect(
        name="mixedbread",
        operation="reranking",
        base_url="https://api.mixedbread.com",
        key="MXBAI_API_KEY",
        documents="input",
        cut="top_k",
        echo="return_input",
    ),
    Dialect(
        name="zeroentropy",
        operation="models/rerank",
        base_url="https://api.zeroentropy.dev",
        key="ZEROENTROPY_API_KEY",
    ),
    Dialect(name="openrouter", base_url="https://openrouter.ai/api", key="OPENROUTER_API_KEY"),
    Dialect(name="nvidia", operation="ranking", documents="passages", wrapped=True, cut=None),
)

DIALECTS: Final[Mapping[str, Dialect]] = {row.name: row for row in _ROWS}
"""Name -> dialect. `standard` is what most of them have in common."""

AGENT_MEMORY: Final = Dialect(name="agent-memory", version="", base_url="https://api.openai.com/v1", cut=None)
"""What agent-memory 2.2 sends: model, query, documents, to `{base}/rerank`. For `rerank-api.agent-memory` alone."""

KEYS: Final[Mapping[str, str]] = {
    **{urlsplit(row.base_url).netloc: row.key for row in _ROWS if row.base_url},
    urlsplit(AGENT_MEMORY.base_url).netloc: "OPENAI_API_KEY",
    "ai.api.nvidia.com": "NVIDIA_API_KEY",
}
"""Host of a vendor that answers nobody without a credential -> the variable that usually holds it."""

OWN_FIELDS: Final = frozenset(
    {"model", "input"}
    | {
        place.rpartition(".")[2]
        for row in (*_ROWS, AGENT_MEMORY)
        for place in (row.query, row.documents, row.cut, row.echo)
        if place is not None
    }
)
"""Names of fields that a component fills in itself, in one dialect or another."""
