"""Any text has scores; many are scored as one is; what does not fit is an error with a reason."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.numpy_helper import from_array

import hydra_core.predictor.graph as graph_module
from hydra_core.base.errors import BundleError
from hydra_core.predictor.bundle import Bundle, Curve, load_bundle
from hydra_core.predictor.onnx_predictor import Predictor
from hydra_core.predictor.signals import signal_prefix
from hydra_core.predictor.tokens import CHARS_PER_TOKEN, model_text
from tests.predictor.tiny_bundle import graph, make_bundle, tokenizer

ODD = {
    "empty": "",
    "blank": " \n\t ",
    "emoji": "🙂👩‍👩‍👧‍👦🏳️‍🌈" * 20,
    "control": "".join(map(chr, range(32))) + "\x7f\x80\x9f",
    "nul": "\x00" * 500,
    "lone surrogates": "a\ud83d b\ude00 \udfff",
    "mixed": "Fix バグ في main.py — пожалуйста ขอบคุณ 감사",
    "right to left": "\u202eأصلح الخطأ\u202c שלום",
    "combining": "e" + "\u0301" * 3000,
    "code": "for (;;) { x += 1; }\n" * 30,
    "zero width": "\u200b\u200d\ufeff" * 100,
    "noncharacters": "\ufffe\uffff\U0010ffff",
    "megabyte": "write a poem " * 80_000,
    "megabyte of one letter": "a" * 1_000_000,
    "megabyte of blanks": " " * 1_000_000,
    "megabyte of emoji": "🙂" * 1_000_000,
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_any_text_has_scores(tiny_predictor: Predictor, text: str) -> None:
    found = tiny_predictor.predict([text])
    assert found.requirements.shape == (1, 4)
    assert np.all((found.requirements >= 0) & (found.requirements <= 1))
    assert 0 < found.tokens[0] <= tiny_predictor.bundle.max_tokens


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_any_text_has_scores_from_the_shipped_bundle(
    shipped_predictor: Predictor, text: str
) -> None:
    found = shipped_predictor.predict([text])
    assert found.requirements.shape == (1, 4)
    assert np.all((found.requirements >= 0) & (found.requirements <= 1))


@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters(codec=None, categories=None), max_size=200))
def test_any_string_at_all_has_scores(tiny_predictor: Predictor, text: str) -> None:
    assert np.isfinite(tiny_predictor.predict([text]).requirements).all()


def test_the_model_sees_prefix_and_message(tiny_predictor: Predictor) -> None:
    text = "fix the bug"
    seen = tokenizer().encode(signal_prefix(text, 3) + text)
    assert tiny_predictor.predict([text], [3]).tokens[0] == len(seen.ids)


def test_the_turn_is_part_of_what_is_seen(tiny_predictor: Predictor) -> None:
    scores = tiny_predictor.predict(["fix bug"] * 2, [1, 9]).requirements
    assert not np.array_equal(scores[0], scores[1])


def test_truncation_is_stated(tiny_predictor: Predictor) -> None:
    cap = tiny_predictor.bundle.max_tokens
    texts = ["fix", "fix " * (2 * cap), "fix" + " " * (CHARS_PER_TOKEN * cap)]
    found = tiny_predictor.predict(texts)
    assert found.truncated.tolist() == [False, True, True]
    assert found.tokens[1] == cap


def test_of_a_long_message_the_head_and_the_end_are_seen(tiny_predictor: Predictor) -> None:
    log = "poem " * 900
    texts = [log + log, log + "write " + log, "write " * 30 + log + log, log + log + "write " * 9]
    scores = tiny_predictor.predict(texts).requirements
    assert np.array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])
    assert not np.array_equal(scores[0], scores[3])


MANY = [f"fix bug {'poem ' * (i % 37)}{i % 11}" for i in range(150)] + list(ODD.values())


def test_a_batch_scores_exactly_as_one_by_one(tiny_predictor: Predictor) -> None:
    one = [tiny_predictor.predict([text]) for text in MANY]
    many = tiny_predictor.predict_batches(MANY, workers=3)
    assert np.array_equal(many.requirements, np.vstack([p.requirements for p in one]))
    assert np.array_equal(many.tokens, np.concatenate([p.tokens for p in one]))
    assert np.array_equal(many.truncated, np.concatenate([p.truncated for p in one]))


def test_the_shipped_bundle_scores_a_batch_exactly_as_one_by_one(
    shipped_predictor: Predictor,
) -> None:
    texts = MANY[:20] + [text[:3000] for text in ODD.values()]
    one = np.vstack([shipped_predictor.predict([text]).requirements for text in texts])
    many = shipped_predictor.predict_batches(texts, batch_size=5, workers=2)
    assert np.array_equal(many.requirements, one)


def test_turns_stay_with_their_messages(tiny_predictor: Predictor) -> None:
    texts, turns = ["fix bug", "poem", "fix bug"], [1, 4, 9]
    many = tiny_predictor.predict_batches(texts, turns=turns)
    assert np.array_equal(many.requirements, tiny_predictor.predict(texts, turns).requirements)


def test_no_messages_have_no_scores(tiny_predictor: Predictor) -> None:
    for found in (tiny_predictor.predict([]), tiny_predictor.predict_batches([])):
        assert found.requirements.shape == (0, 4)
        assert found.tokens.shape == found.truncated.shape == (0,)


def test_progress_ends_at_the_whole(tiny_predictor: Predictor) -> None:
    steps: list[tuple[int, int]] = []
    tiny_predictor.predict_batches(
        ["poem", *MANY, *MANY], progress=lambda done, n: steps.append((done, n))
    )
    assert steps[-1] == (2 * len(MANY) + 1, 2 * len(MANY) + 1)
    assert steps == sorted(steps)


def test_progress_can_stop_the_work(tiny_predictor: Predictor) -> None:
    class StopError(Exception):
        pass

    def stop(done: int, n: int) -> None:
        raise StopError

    with pytest.raises(StopError):
        tiny_predictor.predict_batches(MANY, batch_size=1, progress=stop)


def test_one_string_is_not_a_list_of_messages(tiny_predictor: Predictor) -> None:
    with pytest.raises(TypeError):
        tiny_predictor.predict("fix")


def test_scores_are_read_only(tiny_predictor: Predictor) -> None:
    with pytest.raises(ValueError, match="read-only"):
        tiny_predictor.predict(["fix"]).requirements[0, 0] = 1.0


def test_calibration_bends_the_scores(bundle_maker: Callable[..., Bundle]) -> None:
    raw = Predictor(bundle_maker()).predict(["fix bug"]).requirements[0]
    bent = Curve((0.0, 0.25, 1.0), (0.1, 0.2, 1.4))
    said = Predictor(bundle_maker(calibration=[bent] * 4)).predict(["fix bug"]).requirements[0]
    np.testing.assert_allclose(said, np.clip(np.interp(raw, bent.x, bent.y), 0, 1))


def test_fixed_text_comes_first(bundle_maker: Callable[..., Bundle]) -> None:
    plain = Predictor(bundle_maker()).predict(["fix"]).tokens[0]
    assert Predictor(bundle_maker(before="write poem ")).predict(["fix"]).tokens[0] == plain + 2


def test_the_tokenizer_is_the_one_transformers_makes(shipped_predictor: Predictor) -> None:
    transformers = pytest.importorskip("transformers")
    bundle = shipped_predictor.bundle
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(bundle.path / bundle.tokenizer), model_max_length=bundle.max_tokens
    )
    for text in ["fix main.py", "修复这个错误", "Напиши тест", "ابحث عن الخطأ", "🙂 " * 900]:
        whole = model_text(text, 1, bundle.max_tokens)
        ours = min(len(fast(whole)["input_ids"]), bundle.max_tokens)
        assert shipped_predictor.predict([text]).tokens[0] == ours


def save(folder: Path, model: onnx.ModelProto) -> Path:
    folder.mkdir()
    onnx.save(model, folder / "model.int8.onnx")
    return folder


def refusal(bundle: Bundle) -> str:
    with pytest.raises(BundleError) as caught:
        Predictor(bundle)
    return str(caught.value)


def test_a_model_that_is_no_onnx_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.int8.onnx").write_bytes(b"not a model")
    assert "model.int8.onnx: is not an ONNX file" in refusal(make_bundle(tmp_path))


def test_half_a_model_with_a_matching_sum_is_refused(bundle_maker: Callable[..., Bundle]) -> None:
    model = bundle_maker().path / "model.int8.onnx"
    model.write_bytes(model.read_bytes()[:3000])
    assert "model.int8.onnx: " in refusal(bundle_maker())


def test_weights_outside_the_fingerprint_are_refused(tmp_path: Path) -> None:
    folder = save(tmp_path / "b", graph(tokenizer().get_vocab_size()))
    onnx.save(
        onnx.load(folder / "model.int8.onnx"),
        folder / "model.int8.onnx",
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=100,
    )
    assert (folder / "weights.bin").exists()
    assert "model.int8.onnx: keeps weights outside its own file" in refusal(make_bundle(folder))


def test_a_tokenizer_that_is_none_is_refused(bundle_maker: Callable[..., Bundle]) -> None:
    made = bundle_maker()
    (made.path / made.tokenizer).write_text('{"model": 3}', "utf-8")
    assert "tokenizer.json: is not a tokenizer" in refusal(made)


def test_a_tokenizer_with_more_words_than_the_model_is_refused(tmp_path: Path) -> None:
    made = make_bundle(save(tmp_path / "b", graph(vocabulary=5)))
    assert "model.int8.onnx: could not be run" in refusal(made)


def test_a_model_with_other_heads_is_refused(tmp_path: Path) -> None:
    size = tokenizer().get_vocab_size()
    made = make_bundle(save(tmp_path / "b", graph(size, outputs=3)))
    assert "gave shape (1, 3), finite scores of shape (1, 4)" in refusal(made)


def test_a_model_with_unknown_inputs_is_refused(tmp_path: Path) -> None:
    size = tokenizer().get_vocab_size()
    made = make_bundle(save(tmp_path / "b", graph(size, extra_input="pixels")))
    assert "takes the inputs ['attention_mask', 'input_ids', 'pixels']" in refusal(made)


@pytest.mark.parametrize("name", ["token_type_ids", "position_ids"])
def test_further_usual_inputs_are_given(tmp_path: Path, name: str) -> None:
    size = tokenizer().get_vocab_size()
    made = make_bundle(save(tmp_path / "b", graph(size, extra_input=name)))
    assert Predictor(made).predict(["fix"]).requirements.shape == (1, 4)


def test_other_dimensions_are_data(tmp_path: Path) -> None:
    size = tokenizer().get_vocab_size()
    folder = save(tmp_path / "b", graph(size, outputs=1))
    made = make_bundle(folder, dimensions=("law",), bands=make_bundle(tmp_path / "x").bands[:1])
    assert Predictor(made).predict(["fix", "bug"]).requirements.shape == (2, 1)


def test_importing_the_package_loads_no_runtime() -> None:
    code = (
        "import sys, hydra_core.predictor, hydra_core.predictor.onnx_predictor\n"
        "heavy = {'onnxruntime', 'tokenizers', 'transformers', 'torch', 'pandas', 'scipy'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("overflows", [True, False])
def test_products_are_added_exactly_whatever_the_cpu(
    tiny_predictor: Predictor, monkeypatch: pytest.MonkeyPatch, overflows: bool
) -> None:
    """The slower way is taken where the fast one overflows, and there alone."""
    monkeypatch.setattr(graph_module, "adds_in_16_bits", lambda: overflows)
    opened = Predictor(tiny_predictor.bundle)._graph._session.get_session_options()
    if overflows:
        assert opened.get_session_config_entry("session.x64quantprecision") == "1"
    else:
        with pytest.raises(RuntimeError, match="does not have"):
            opened.get_session_config_entry("session.x64quantprecision")


def test_the_cpu_is_asked_with_the_largest_products() -> None:
    column = np.full((64, 1), 127, dtype=np.int8)
    node = helper.make_node("MatMulInteger", ["a", "b"], ["c"])
    given = helper.make_tensor_value_info("a", TensorProto.UINT8, [None, 64])
    found = helper.make_tensor_value_info("c", TensorProto.INT32, None)
    product = helper.make_graph([node], "g", [given], [found], [from_array(column, "b")])
    opset = helper.make_opsetid("", 13)
    made = helper.make_model(product, opset_imports=[opset], ir_version=8)
    assert onnx.load_from_string(graph_module._PROBE) == made


def test_both_ways_of_adding_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the CPU adds exactly the slower way changes nothing; where it does not, both ask."""
    texts = ["Fix the race in the reconnect", "ดูบันทึกแล้วบอกว่าพังตรงไหน", "thanks! " * 90]
    first = Predictor(load_bundle()).predict(texts)
    monkeypatch.setattr(graph_module, "adds_in_16_bits", lambda: True)
    second = Predictor(load_bundle()).predict(texts)
    assert np.array_equal(first.requirements, second.requirements)
    assert np.array_equal(first.vectors, second.vectors)
