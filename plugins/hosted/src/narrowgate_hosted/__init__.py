"""Decision backends, structured generation and embeddings over HTTP, hosted or on a loopback address."""
