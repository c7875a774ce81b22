import pytest

from hydra_core.base.addresses import is_loopback, require_safe
from hydra_core.base.errors import AccessError


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "127.0.0.1", "127.9.9.9", "[::1]"])
def test_loopback_is_this_machine_alone(host):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "0.0.0.0",
        "::",
        "*",
        "10.0.0.1",
        "localhost.example.org",
        "127.0.0.1.example.org",
        "2130706433",
    ],
)
def test_anything_else_may_be_reached_by_others(host):
    assert not is_loopback(host)


def test_others_are_served_only_with_proof_or_knowingly():
    with pytest.raises(AccessError, match=r"Configure it; or stay on .* --insecure-no-sign-in"):
        require_safe("0.0.0.0", proof=False, insecure=False, remedy="Configure it")
    require_safe("0.0.0.0", proof=True, insecure=False, remedy="")
    require_safe("0.0.0.0", proof=False, insecure=True, remedy="")
    require_safe("127.0.0.1", proof=False, insecure=False, remedy="")
