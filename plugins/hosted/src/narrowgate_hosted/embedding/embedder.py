"""The embedder: batches, bounded concurrency, vectors that are checked, and a cost that is right whatever happens."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

from narrowgate.decisions import Usage, spending, total, unreported
from narrowgate.errors import EmbeddingError
from narrowgate.seams import Deps
from narrowgate.values.entry import EmbeddingProfile
from narrowgate_hosted.embedding.dialects import WIRES, ShapeError
from narrowgate_hosted.embedding.profiles import NAME, profile_of
from narrowgate_hosted.embedding.settings import EmbedderSettings
from narrowgate_hosted.embedding.vectors import CURES, VectorError, nowhere, unit
from narrowgate_http import HttpClient, HttpError, Reply, http_client, shown
from narrowgate_http.together import each


class HostedEmbedder:
    """Asks a server for vectors; implements `Embedder`.

    Args:
        client: the pool of this component.
        settings: see `EmbedderSettings`; `base_url` was checked.

    Attributes:
        answered_by: the model that the server named in its last answer; `None` where it names none.
    """

    def __init__(self, client: HttpClient, settings: EmbedderSettings) -> None:
        self._client, self._settings = client, settings
        self._wire = WIRES[settings.dialect]
        self._url = self._wire.url(settings)
        self._profile = profile_of(settings)
        self.answered_by: str | None = None

    @property
    def profile(self) -> EmbeddingProfile:
        """What makes its vectors comparable: model, version, dimension, and how texts are marked and prefixed."""
        return self._profile

    @property
    def settings(self) -> EmbedderSettings:
        """What it was made with."""
        return self._settings

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[Sequence[float]]:
        """Return one vector of 32-bit floats and of length 1 for each text, in order.

        Equal texts are sent once. A blank text is not sent and gets the first unit vector, so that it is near nothing. When
        a request fails, no further one is started, and those under way are cancelled and waited for.

        Args:
            texts: any number of them.
            query: the texts are questions; they have the prefix, the fields and the deadline of queries.

        Raises:
            EmbeddingError: the first failure, with its code and the cost of all requests.
        """
        prefix = self._settings.query_prefix if query else self._settings.document_prefix
        wanted = list(dict.fromkeys(text for text in texts if text.strip()))
        batches = list(batched([prefix + text for text in wanted], self._settings.batch_size, self._settings.batch_bytes))
        costs: list[Usage] = []
        with spending(lambda: total(costs)):
            found = await self._all(batches, query, costs)
        made = dict(zip(wanted, [vector for vectors in found for vector in vectors], strict=True))
        return [made[text] if text in made else nowhere(self._settings.dimension) for text in texts]

    async def _all(self, batches: Sequence[Sequence[str]], query: bool, costs: list[Usage]) -> list[list[array[float]]]:
        """Return the vectors of each batch; `costs` gets one entry for each request, also where this fails."""
        try:
            return await each(batches, lambda batch: self._one(batch, query, costs), self._settings.concurrency)
        except EmbeddingError as first:
            raise EmbeddingError(str(first), total(costs), first.code) from first.__cause__

    async def _one(self, batch: Sequence[str], query: bool, costs: list[Usage]) -> list[array[float]]:
        place = len(costs)
        # Entered before the call and corrected after it, so that a cancelled call stays in the account.
        costs.append(unreported(len(batch)))
        body = self._wire.body(self._settings, batch, query=query)
        within = self._settings.query_deadline if query else None
        try:
            reply = await self._client.post(self._url, body, contents=batch, within=within)
        except HttpError as failure:
            costs[place] = failure.usage(len(batch))
            raise failure.as_error(EmbeddingError, len(batch)) from failure
        tokens = None if reply.tokens_unknown else self._wire.cost(reply)
        costs[place] = Usage(len(batch), reply.requests, tokens, 0)
        return self._vectors(reply, batch)

    def _vectors(self, reply: Reply, batch: Sequence[str]) -> list[array[float]]:
        answer = reply.json
        try:
            raw = self._wire.vectors(answer, len(batch))
        except ShapeError as error:
            # A server may answer 200 with an error in it.
            code = "provider-error" if isinstance(answer, dict) and answer.get("error") else "wrong-shape"
            failure = self._client.refused(code, self._url, str(error), answer, batch)
            raise EmbeddingError(str(failure), code=code) from failure
        try:
            vectors = [unit(item, self._settings.dimension) for item in raw]
        except VectorError as error:
            text = f"{NAME}: {shown(self._url)} {error} [{error.code}]: {CURES[error.code]}"
            raise EmbeddingError(text, code=error.code) from error
        named = answer.get("model") if isinstance(answer, dict) else None
        self.answered_by = named if isinstance(named, str) else None
        return vectors


def batched(texts: Sequence[str], count: int, size: int) -> Iterator[list[str]]:
    """Split texts into runs of at most `count` texts and `size` bytes, in order; a longer text is a run by itself."""
    batch: list[str] = []
    used = 0
    for text in texts:
        length = len(text.encode("utf-8", "surrogatepass"))
        if batch and (len(batch) == count or used + length > size):
            yield batch
            batch, used = [], 0
        batch.append(text)
        used += length
    if batch:
        yield batch


@asynccontextmanager
async def build(settings: EmbedderSettings, _deps: Deps) -> AsyncIterator[HostedEmbedder]:
    """Open the pool and yield the embedder; nothing is called before it is asked."""
    async with http_client(NAME, settings) as client:
        yield HostedEmbedder(client, settings)
