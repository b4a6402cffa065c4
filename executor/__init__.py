"""Running plans: model files, engines, the pipeline runtime, the autotuner."""

import os

# From version 1.29 on, ONNX Runtime writes a device id into the home folder and, some seconds after its
# import, reports to a server, unless it is told not to before. Other libraries import it too (onnxslim).
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
