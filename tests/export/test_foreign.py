"""Exports to other routers. Against the real packages where they are installed, or where
HYDRA_LITELLM_PYTHON and HYDRA_VLLM_SR name a Python with litellm and the vllm-sr command."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hydra_core.base.errors import CatalogError
from hydra_core.base.list_price import LongPromptPrice
from hydra_core.base.types import Team
from hydra_core.catalog import capabilities, load_catalog, parse_catalog
from hydra_core.export.foreign import per_token
from hydra_core.export.litellm import litellm_config, without_provider
from hydra_core.export.vllm_semantic_router import vllm_semantic_router_config
from tests.catalog.small import edited

EIGHT = Path(__file__).parents[2] / "catalog" / "paper_eight.yaml"
LITELLM = os.environ.get("HYDRA_LITELLM_PYTHON") or (
    sys.executable if importlib.util.find_spec("litellm") else ""
)
VLLM_SR = os.environ.get("HYDRA_VLLM_SR") or shutil.which("vllm-sr")
LEAVING = edited(
    ("status: active", "status: retiring\n    retire_on: 2026-09-01"),
    ("output_usd_per_mtok: 4.50", "output_usd_per_mtok: 4.50\n    cached_input_usd_per_mtok: 0.03"),
)


@given(st.integers(1, 10**9))
def test_a_price_per_token_is_exact(millionths):
    price = Decimal(millionths) / 10**4
    assert per_token(float(price)) * 10**6 == price


def test_litellm_gets_models_prices_and_capabilities():
    export = litellm_config(parse_catalog(LEAVING))
    cheap, strong = yaml.safe_load(export.text)["model_list"]
    assert cheap["model_name"] == strong["model_name"] == "auto"
    assert cheap["litellm_params"] == {"model": "acme/cheap"}
    assert cheap["model_info"] == {
        "mode": "chat",
        "max_input_tokens": 128000,
        "supports_vision": False,
        "supports_function_calling": True,
        "input_cost_per_token": 3.1e-07,
        "output_cost_per_token": 4.5e-06,
        "cache_read_input_token_cost": 3e-08,
        "hydra_capabilities": {"reasoning": 0.2, "debugging": 0.1},
    }
    assert "cache_read_input_token_cost" not in strong["model_info"]
    assert "input_cost_per_token: 0.00000031\n" in export.text


def test_litellm_gets_the_plugin_that_chooses():
    data = yaml.safe_load(litellm_config(parse_catalog(LEAVING)).text)
    (plugin,) = data["router_settings"]["plugins"]
    module, _, name = plugin.rpartition(".")
    assert module == "hydra_core.server.litellm_plugins"
    assert name == "routing"
    ids = {model.id for model in parse_catalog(LEAVING).models}
    called = {one["litellm_params"]["model"].partition("/")[2] for one in data["model_list"]}
    assert called <= ids  # as the plugin finds a candidate's model


def test_a_model_without_a_provider_is_asked_for_and_never_written():
    catalog = parse_catalog(edited(("provider: acme", "provider: not stated")))
    assert without_provider(catalog) == ("cheap",)
    with pytest.raises(CatalogError, match="'cheap': provider: is not known"):
        litellm_config(catalog)
    first = yaml.safe_load(litellm_config(catalog, {"cheap": "OpenAI"}).text)["model_list"][0]
    assert first["litellm_params"] == {"model": "openai/cheap"}


def test_a_provider_has_litellms_name():
    catalog = parse_catalog(edited(("provider: acme", "provider: Google")))
    first = yaml.safe_load(litellm_config(catalog).text)["model_list"][0]
    assert first["litellm_params"] == {"model": "gemini/cheap"}


def test_a_provider_in_the_id_is_not_doubled():
    text = edited(("id: cheap", "id: acme/cheap"))
    first = yaml.safe_load(litellm_config(parse_catalog(text)).text)["model_list"][0]
    assert first["litellm_params"] == {"model": "acme/cheap"}


def test_the_semantic_router_gets_cards_prices_and_a_safe_default():
    export = vllm_semantic_router_config(parse_catalog(LEAVING))
    data = yaml.safe_load(export.text)
    assert data["providers"]["defaults"] == {"model": "strong"}
    assert data["providers"]["models"][0]["pricing"] == {
        "currency": "USD",
        "prompt_per_1m": 0.31,
        "completion_per_1m": 4.5,
        "cached_input_per_1m": 0.03,
    }
    assert data["routing"]["modelCards"][1]["modalities"]["input"] == ["text", "image"]
    assert data["routing"]["decisions"][0]["modelRefs"][0]["model"] == "strong"
    assert data["evaluation"]["records"][0]["metrics"] == {"reasoning": 0.2, "debugging": 0.1}


@pytest.mark.parametrize("write", [litellm_config, vllm_semantic_router_config])
def test_what_cannot_be_expressed_stands_in_the_head_and_in_the_result(write):
    text = LEAVING.replace("status: active", "status: disabled", 1)
    export = write(parse_catalog(text))
    assert any("tau 0.24" in note for note in export.not_expressed)
    assert any("cheap on 2026-09-01" in note for note in export.not_expressed)
    assert "disabled and retired models are left out: strong" in export.not_expressed
    head = [line for line in export.text.splitlines() if line.startswith("#")]
    for note in export.not_expressed:
        assert f"#   - {note}" in head
    assert "strong" not in [line for line in export.text.splitlines() if "name" in line]


def test_gates_long_prompts_and_teams_are_said_not_to_go_along():
    teams = {"search": Team(tau=0.1), "eu": Team()}
    catalog = parse_catalog(LEAVING)
    tier = LongPromptPrice(200_000, 1.0, 9.0)
    model = replace(catalog.models[0], long_prompts=(tier,), tags=frozenset({"eu"}))
    policy = replace(catalog.policy, teams=teams, require=frozenset({"eu"}))
    catalog = replace(catalog, models=(model, *catalog.models[1:]), policy=policy)
    said = vllm_semantic_router_config(catalog).not_expressed
    of_teams = "models, knobs and budgets of teams: search, eu"
    assert {
        of_teams,
        "prices of long requests: cheap",
        "what models lack, and their tags: cheap",
        "tags that the policy requires: eu",
    } <= set(said)
    assert of_teams in litellm_config(catalog).not_expressed


@pytest.mark.parametrize("write", [litellm_config, vllm_semantic_router_config])
def test_awkward_ids_and_names_stay_what_they_are(write):
    text = edited(("id: cheap", 'id: "007"'), ("name: small", 'name: "a\\u0085b # c"'))
    data = yaml.safe_load(write(parse_catalog(text)).text)
    if "model_list" in data:
        names = [one["litellm_params"]["model"].partition("/")[2] for one in data["model_list"]]
    else:
        names = [one["name"] for one in data["providers"]["models"]]
    assert "007" in names


@pytest.mark.skipif(not LITELLM, reason="litellm is not installed (pip install litellm)")
def test_the_real_litellm_bills_by_the_exported_prices(tmp_path):
    catalog = load_catalog(EIGHT)
    path = tmp_path / "config.yaml"
    path.write_text(litellm_config(catalog).text, encoding="utf-8")
    script = Path(__file__).with_name("litellm_loads.py")
    done = subprocess.run(
        [LITELLM, str(script), str(path)],
        capture_output=True,
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    billed = json.loads(done.stdout.splitlines()[-1])
    assert list(billed) == [model.id for model in catalog.models]
    for model, row in zip(catalog.models, capabilities(catalog), strict=True):
        tokens_in, tokens_out, cost_usd, profile = billed[model.id]
        wanted = tokens_in * model.input_usd_per_mtok + tokens_out * model.output_usd_per_mtok
        assert cost_usd == pytest.approx(wanted / 1e6, rel=1e-12)
        assert list(profile.values()) == pytest.approx(list(row), abs=1e-6)


@pytest.mark.skipif(not VLLM_SR, reason="vllm-sr is not installed (pip install vllm-sr)")
def test_the_real_semantic_router_accepts_the_file(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(vllm_semantic_router_config(load_catalog(EIGHT)).text, encoding="utf-8")
    command = [VLLM_SR, "config", "validate", "--config", str(path)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    assert "Configuration is valid" in done.stdout.decode()
