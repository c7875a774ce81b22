"""Tables rebuilt from public reports give the values that their README states."""

import csv
import re
import shlex

import numpy as np
import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.catalog.identifiers import proposed_ids
from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.importers.reading.cells import Form
from hydra_core.evalsets.importers.table import model_names, read_table
from tests.evalsets.importers.shared_cases import CASES, needs_cases

pytestmark = needs_cases
TABLES = CASES / "tables"


@pytest.mark.parametrize("name", ["sep.csv", "excel_de.csv"])
def test_german_excel_is_read(name):
    draft = read_table([TABLES / name])
    assert draft.models == ("gpt-4o", "gpt-4o-mini")
    assert draft.quality.shape == (20, 2)
    assert set(draft.cost_usd.ravel()) == {0.0123, 0.0004}
    assert "Überprüfe Zeile 0: größer; kleiner?" in set(draft.queries["text"])


def test_a_comma_between_thousands_never_becomes_a_decimal_mark():
    path = TABLES / "thousand_nodot.csv"
    assert set(read_table([path]).extras["input_tokens"].ravel()) == {1234.0}
    with pytest.raises(EvalSetError, match="column 'input_tokens': 10 of 10 cells are not whole"):
        read_table([path], form=Form(decimal=","))


def test_routerbench_is_found_by_itself_and_its_prompts_are_texts():
    draft = read_table([TABLES / "routerbench_like.csv"])
    assert len(draft.models) == 6
    assert np.isfinite(draft.cost_usd).all()
    assert draft.quality.shape == (120, 6)
    assert not draft.queries["text"].str.contains(r"[\[\]]").any()
    assert draft.queries["text"].str.startswith("Please answer. ").all()


def test_human_headers_name_four_models_and_their_columns_are_read_one_by_one(tmp_path, capsys):
    path = TABLES / "human_headers.csv"
    command = ["import", "table", str(path), "--accept-ids", "--out", str(tmp_path / "set")]
    assert main(command) == 2
    problem = capsys.readouterr().err
    assert "column 'Sonnet 3.5 $'" in problem
    assert problem.count("column '") == 1
    option = re.search(r"--rate EUR", problem)[0]
    assert main([*command, *shlex.split(f"{option}=1.25")]) == 0
    evalset = load_evalset(tmp_path / "set")
    with path.open(encoding="utf-8-sig") as stream:
        rows = list(csv.DictReader(stream))
    assert evalset.models == tuple(sorted(proposed_ids(model_names([path])).values()))
    ids = {name: evalset.models.index(model) for name, model in
           proposed_ids(model_names([path])).items()}  # fmt: skip
    words = {"yes": 1.0, "no": 0.0, "100%": 1.0, "0%": 0.0, "1": 1.0, "0": 0.0}
    for row in rows:
        at = list(evalset.queries["query_id"]).index(row["Ticket #"])
        for name, column in ids.items():
            quality, cost = row[f"{name} correct"], row[f"{name} $"]
            if quality:
                assert evalset.quality[at, column] == words[quality]
            if quality and cost:
                usd = float(cost.strip("$€ ").replace(",", ".")) * (1.25 if "€" in cost else 1)
                assert evalset.cost_usd[at, column] == pytest.approx(usd, rel=1e-12)
