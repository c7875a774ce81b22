"""HyDRA: an operator console and router for pools of language models."""

import os

# onnxruntime reports to its makers, from its import on, unless this is set.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

if os.name == "nt":
    raise ImportError("HyDRA does not run on Windows: use WSL or deploy/Containerfile.")
