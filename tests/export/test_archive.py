"""A release of a catalog with an outcome model holds both, and `validate` finds them together."""

import io
import zipfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hydra_core.base.errors import OutcomeModelError
from hydra_core.base.types import Rule, SuccessSource
from hydra_core.catalog import load_catalog
from hydra_core.cli.main import main
from hydra_core.export.litellm import litellm_config
from hydra_core.export.release import Provenance, check_release, portable, release_archive
from hydra_core.export.vllm_semantic_router import vllm_semantic_router_config

PATH = Path("catalog/mixed_2024.yaml")
ORIGIN = Provenance(3, "ana", "first", datetime(2026, 11, 1, tzinfo=UTC))


@pytest.fixture
def catalog():
    return load_catalog(PATH)


def unpacked(data, folder):
    zipfile.ZipFile(io.BytesIO(data)).extractall(folder)
    return folder / "pool.yaml"


def test_validate_finds_the_outcome_model_of_an_unpacked_release(catalog, tmp_path, capsys):
    data = release_archive(PATH.read_text(), catalog, ORIGIN, "pool")
    path = unpacked(data, tmp_path / "whole")
    text = path.read_text()
    assert check_release(text).intact
    assert f"outcome model: mixed_2024, sha256 {catalog.outcome_model.sha256}" in text
    assert main(["validate", str(path)]) == 0
    assert f"outcome model {catalog.outcome_model.sha256[:12]}" in capsys.readouterr().out
    path = unpacked(data, tmp_path / "damaged")
    heads = path.parent / "mixed_2024" / "heads.npz"
    heads.write_bytes(heads.read_bytes()[:-1])
    assert main(["validate", str(path)]) == 2


def test_a_path_that_leads_elsewhere_is_made_portable(catalog, tmp_path):
    away = PATH.absolute().with_suffix("")
    text = PATH.read_text().replace("path: mixed_2024", f"path: {away}")
    moved = replace(catalog, outcome_model=replace(catalog.outcome_model, path=str(away)))
    assert "path: outcome_models/mixed_2024" in portable(text)
    path = unpacked(release_archive(text, moved, ORIGIN, "pool"), tmp_path)
    assert main(["validate", str(path)]) == 0
    assert (tmp_path / "outcome_models" / "mixed_2024" / "learned.npz").is_file()


def test_a_release_without_its_outcome_model_is_refused(catalog):
    gone = replace(catalog, outcome_model=replace(catalog.outcome_model, path="nowhere"))
    with pytest.raises(OutcomeModelError, match="is not there"):
        release_archive(PATH.read_text(), gone, ORIGIN, "pool")


@pytest.mark.parametrize("write", [litellm_config, vllm_semantic_router_config])
def test_an_export_names_the_value_rule_as_lost(catalog, write):
    named = tuple(replace(model, provider="openai") for model in catalog.models)
    catalog = replace(catalog, models=named)  # the shipped one does not state its providers
    source = SuccessSource.OUTCOME_MODEL
    policy = replace(catalog.policy, rule=Rule.VALUE, value_usd=0.02, success_from=source)
    notes = write(replace(catalog, policy=policy)).not_expressed
    assert notes[0].startswith("the value rule: V 0.02 USD, outcome model mixed_2024 (")
    assert notes[1].startswith("the shortfall rule: tau ")
    policy = replace(catalog.policy, rule=Rule.SHORTFALL)
    by_tau = write(replace(catalog, policy=policy)).not_expressed
    assert by_tau[0].startswith("the shortfall rule: tau ")
