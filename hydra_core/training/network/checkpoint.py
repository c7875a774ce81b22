"""Weights of a model on disk."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch import Tensor

from hydra_core.training.network.model import Predictor


def save_weights(model: Predictor, path: Path) -> None:
    """Write the state of a model, whole or not at all."""
    part = path.with_suffix(".part")
    torch.save(model.state_dict(), part)
    os.replace(part, path)


def load_weights(path: Path) -> dict[str, Tensor]:
    """Read what `save_weights` wrote; tensors only, nothing is executed."""
    state: dict[str, Tensor] = torch.load(path, weights_only=True, map_location="cpu")
    return state
