"""MLServer around one model in ONNX Runtime: its REST has no binary tensors, so it is asked over gRPC.

    python -m benchmarks.bare_mlserver MODEL.onnx 8001

REST listens at the port that is named, gRPC at the next one. Needs mlserver, onnxruntime and numpy.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from mlserver import MLModel, MLServer, ModelSettings, Settings
from mlserver.codecs import NumpyCodec
from mlserver.settings import ModelParameters
from mlserver.types import InferenceResponse, Parameters, ResponseOutput

from benchmarks.bare_servers import Engine


class Runtime(MLModel):  # type: ignore[misc] # of a package that may not be here
    """Runs the model, in the process of the server."""

    async def load(self) -> bool:
        """Open it."""
        self._engine = Engine(self.settings.parameters.uri)
        return True

    async def predict(self, payload: Any) -> Any:
        """Answer a request, and say how long the engine took."""
        found, engine_us = self._engine.run(NumpyCodec.decode_input(payload.inputs[0]))
        data = found.ravel().tolist()
        told = ResponseOutput(name="y", shape=list(found.shape), datatype="FP32", data=data)
        taken = Parameters(engine_us=str(engine_us))
        return InferenceResponse(model_name=self.name, outputs=[told], parameters=taken)


async def serve(path: str, port: int) -> None:
    """Serve until somebody ends it."""
    ports = {"http_port": port, "grpc_port": port + 1, "metrics_port": port + 2}
    server = MLServer(Settings(host="127.0.0.1", parallel_workers=0, debug=False, **ports))
    where = ModelParameters(uri=path)
    await server.start(
        [ModelSettings(name="model", implementation="benchmarks.bare_mlserver.Runtime", parameters=where)]
    )


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
