"""The evidence model: does this text hold evidence that answers this query? A small linear model over readable features."""
