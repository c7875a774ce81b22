# ruff: noqa: E402 - torch is looked for before what needs it is imported

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: make test-train")

from hydra_core.lab.training.network.heads import KernelConfig, fit_kernel, fit_layered
from hydra_core.lab.training.network.model import Predictor


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 6)).astype(np.float32)
    y = np.stack([np.abs(np.tanh(x[:, 0] * x[:, 1])), (x[:, 2] > 0) * 0.8], 1)
    return x, y.astype(np.float32)


def test_it_learns_what_no_line_can() -> None:
    x, y = data()
    config = KernelConfig(landmarks=300, gamma=0.8, ridge=0.02)
    head = fit_kernel(x[:500], y[:500], np.ones(500, np.float32), config)
    said = head(torch.tensor(x[500:])).numpy()
    assert np.corrcoef(said[:, 0], y[500:, 0])[0, 1] > 0.6
    assert said.min() >= 0
    assert said.max() <= 1


def test_a_weight_of_zero_is_an_absent_row() -> None:
    x, y = data()
    weight = np.ones(600, np.float32)
    weight[300:] = 0
    config = KernelConfig(landmarks=200, seed=1)
    wrong = y.copy()
    wrong[300:] = 0.9
    a, b = (fit_kernel(x, t, weight, config)(torch.tensor(x[:50])) for t in (y, wrong))
    assert torch.allclose(a, b, atol=1e-5)


def test_blending_moves_between_the_two_heads(tiny: Predictor) -> None:
    ids = torch.randint(4, 40, (3, 6))
    mask = torch.ones_like(ids)
    tiny.eval()
    with torch.inference_mode():
        plain = tiny(ids, mask)
        seen = tiny.layered(ids, mask).numpy()
        half = np.full((3, 4), 0.5, np.float32)
        head = fit_layered(seen, half, np.ones(3, np.float32), KernelConfig(landmarks=3), 2)
        tiny.kernel, tiny.kernel_share = head, 0.25
        assert torch.allclose(tiny(ids, mask), 0.75 * plain + 0.25 * 0.5, atol=1e-2)


def test_stillness_draws_the_wordings_of_a_request_together() -> None:
    x, y = data()
    family = np.repeat(np.arange(200), 3)
    spreads = []
    for stillness in (0.0, 30.0):
        config = KernelConfig(landmarks=300, gamma=0.8, ridge=0.02, stillness=stillness)
        head = fit_kernel(x, y, np.ones(600, np.float32), config, family)
        spreads.append(head(torch.tensor(x)).numpy().reshape(200, 3, 2).std(1).mean())
    assert spreads[1] < 0.5 * spreads[0]


def test_a_row_that_only_has_a_family_moves_nothing_without_stillness() -> None:
    x, y = data()
    weight = np.ones(600, np.float32)
    weight[500:] = 0
    config = KernelConfig(landmarks=200, stillness=0.0)
    whole = fit_kernel(x, y, weight, config, np.arange(600) % 50)
    part = fit_kernel(x[:500], y[:500], weight[:500], config)
    assert torch.allclose(whole(torch.tensor(x)), part(torch.tensor(x)), atol=1e-5)
