"""An empty file of settings is refused with how such a file begins."""

import pytest

from hydra_core.base.errors import HydraError
from hydra_core.catalog.schema import parse_catalog
from hydra_core.routing.conversations.harness import parse_rules
from hydra_core.server.callers import parse_tokens
from hydra_core.server.upstream.file import parse_upstreams


@pytest.mark.parametrize(
    ("read", "begins"),
    [
        (parse_catalog, "hydra.catalog/v1"),
        (parse_upstreams, "hydra.upstreams/v1"),
        (parse_rules, "hydra.harness/v1"),
        (parse_tokens, "tokens:"),
    ],
)
@pytest.mark.parametrize("text", ["", "# nothing yet\n"])
def test_an_empty_file_is_refused_with_how_such_a_file_begins(read, begins, text):
    with pytest.raises(HydraError, match=f"is empty.*begin with '.*{begins}") as caught:
        read(text)
    assert ("catalog/)" in str(caught.value)) == (read is parse_catalog)
