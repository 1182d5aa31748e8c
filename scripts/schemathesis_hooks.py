"""What schemathesis has to know about Tine: how a bundle is sent."""
import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(ctx, value):
    return {"data": value.encode() if isinstance(value, str) else str(value).encode()}
