"""A server on loopback that answers as told, also as no server should: for the tests of whatever calls one.

    with FaultServer([FAULTS["503"], Answer(json={"ok": True})]) as server:
        ...  # call server.url; then look at server.requests

    @pytest.mark.parametrize("name", ALL_FAULTS)
    async def test_fault(name: str) -> None:
        with fault_server(name) as server:
            ...  # call server.url, whatever is wrong there

It listens on a free port of 127.0.0.1 in threads of its own, so that a blocked event loop does not block it, writes to raw
sockets, so that bad HTTP can be sent, and is gone when the block ends: connections closed, threads joined.

    port = free_port()
    with program("llmock", "serve", "--host", "127.0.0.1", "--port", str(port)):
        ...  # a server that others wrote
"""

from narrowgate_http.testing._answers import ALL_FAULTS, FAULTS, PLACES, Answer, Recorded, Script
from narrowgate_http.testing._programs import free_port, program
from narrowgate_http.testing._server import AUTHORITY, FaultServer, fault_server, server_tls, without_waits

__all__ = [
    "ALL_FAULTS",
    "AUTHORITY",
    "FAULTS",
    "PLACES",
    "Answer",
    "FaultServer",
    "Recorded",
    "Script",
    "fault_server",
    "free_port",
    "program",
    "server_tls",
    "without_waits",
]
