"""Success profiles in cells: what is shown is what is written."""

import pytest

from hydra_core.base.errors import CatalogError
from hydra_core.catalog.diff import semantic_diff
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.editing.evidence_grid import COST_FACTOR, edit_success, success_rows
from hydra_core.catalog.schema import parse_catalog
from tests.routing.test_success_profiles import valued


def test_one_row_a_model_below_the_shared_cost_factor():
    catalog = parse_catalog(valued())
    rows = success_rows(CatalogDocument.parse(valued()))
    assert [row["model"] for row in rows] == [COST_FACTOR, *(m.id for m in catalog.models)]
    assert rows[1]["reasoning@1"] == -0.22
    assert rows[1]["output_tokens"] == 500


def test_an_edited_cell_changes_that_number_alone():
    before = parse_catalog(valued())
    text = edit_success(valued(), {0: {"intercept": -0.5}, 2: {"debugging@0": 0.01}})
    after = parse_catalog(text)
    name = before.models[1].id
    assert after.success_profiles.cost_intercept == -0.5
    assert after.success_profiles.models[name].adds[2][0] == 0.01
    assert len(semantic_diff(before, after)) == 2


def test_an_edit_of_a_profile_that_is_gone_is_refused():
    rows = success_rows(CatalogDocument.parse(valued()))
    with pytest.raises(CatalogError, match=f"there is no row {len(rows) + 1}"):
        edit_success(valued(), {len(rows): {"intercept": 0.1}})
