"""Teaches schemathesis how to send a bundle."""
import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(ctx, value):
    return {"data": value.encode() if isinstance(value, str) else str(value).encode()}
