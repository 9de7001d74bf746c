"""The same HTTP stack with a handler that only waits: `python -m tests.bench.bare PORT`."""

import asyncio
import sys

import orjson
import uvicorn
from fastapi import FastAPI, Request
from starlette.responses import Response

WAIT_SECONDS = 0.0012

app = FastAPI()


@app.post("/v1/hosts/{user_id}/{relay_host_id}/assignment")
async def assign(user_id: str, relay_host_id: str, request: Request) -> Response:
    """Read the body, wait as long as a group commit would take, answer as much."""
    orjson.loads(await request.body())
    await asyncio.sleep(WAIT_SECONDS)
    answer = {
        "user_id": user_id,
        "relay_host_id": relay_host_id,
        "cell_id": "cell-00",
        "cell_url": "https://cell-00.bench.test",
        "region": "us-central1",
        "epoch": 1,
        "lease_expires_at": 1_700_000_090_000,
    }
    return Response(orjson.dumps(answer), media_type="application/json")


if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
    )
