# ruff: noqa: E402 - torch is looked for before what needs it is imported

import warnings
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: make test-train")
pytest.importorskip("onnx", reason="training needs torch: make test-train")

from hydra_core.lab.training.network.model import EncoderConfig, Predictor
from hydra_core.lab.training.network.recipe import RecoverError, recovered
from hydra_core.lab.training.ship.export import export_onnx, variant_of

CONFIG = EncoderConfig(vocab=80, width=64, layers=2, heads=2, intermediate=96, max_tokens=64)


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Predictor, Path, Path]:
    torch.manual_seed(3)
    model = Predictor(CONFIG).eval()
    with torch.no_grad():  # the exporter keeps equal tensors once, and fresh biases are all 0
        for value in model.parameters():
            value.add_(0.02 * torch.randn_like(value))
    folder = tmp_path_factory.mktemp("graphs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = export_onnx(model, folder / "fp32.onnx")
        return model, whole, variant_of(whole, "int8_full", folder / "int8.onnx")


def test_weights_come_back_from_a_quantised_graph(graphs: tuple[Predictor, Path, Path]) -> None:
    model, _, int8 = graphs
    state = recovered(int8)
    other = Predictor(CONFIG).eval()
    assert set(state) == {n for n in other.state_dict() if "position_ids" not in n}
    other.load_state_dict(state, strict=False)
    ids = torch.tensor([np.random.default_rng(0).integers(4, 80, 20).tolist()])
    mask = torch.ones_like(ids)
    with torch.inference_mode():
        assert (model(ids, mask) - other(ids, mask)).abs().max() < 0.01
    for name, value in model.state_dict().items():
        if name.endswith("weight") and value.ndim == 2:
            assert (state[name] - value).abs().max() < 0.02 * value.abs().max()


def test_a_matrix_that_belongs_nowhere_is_an_error(
    graphs: tuple[Predictor, Path, Path], tmp_path: Path
) -> None:
    import onnx

    graph = onnx.load(graphs[2])
    for node in graph.graph.node:
        for i, name in enumerate(node.input):
            if name.endswith("query.bias"):
                node.input[i] = "renamed"
    onnx.save(graph, tmp_path / "foreign.onnx")
    with pytest.raises(RecoverError, match="no bias follows"):
        recovered(tmp_path / "foreign.onnx")
