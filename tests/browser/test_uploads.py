"""An upload leaves the console's memory when its tab is closed, with nobody else about."""

import re
import time
import urllib.request

import pytest

from tests.browser.conftest import upload
from tests.console import consoles

pytestmark = pytest.mark.browser


def uploaded_bytes(address):
    """Bytes of uploads in memory, as the console counts them itself."""
    with urllib.request.urlopen(f"{address}/_stcore/metrics", timeout=30) as answer:
        lines = [line for line in answer.read().decode().splitlines() if "UploadedFile" in line]
    return sum(int(re.search(r" (\d+)", line.rpartition("}")[2]).group(1)) for line in lines)


def settled(address, wanted, seconds=30):
    deadline = time.monotonic() + seconds
    while (found := uploaded_bytes(address)) != wanted and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def test_an_upload_goes_with_its_tab(chromium, tmp_path):
    table = tmp_path / "rows.csv"
    table.write_text("query_id,text,model,quality,cost_usd\n" + "a,hello,m,1,0.1\n" * 60_000)
    with consoles.console(tmp_path, "--server.disconnectedSessionTTL", "1") as (_, port):
        address = f"http://127.0.0.1:{port}"
        page = chromium.new_page()
        page.goto(f"{address}/eval_sets")
        page.get_by_role("radio", name="Import", exact=True).click()
        upload(page, table)
        size = table.stat().st_size
        assert settled(address, size) == size
        page.close()
        assert settled(address, 0) == 0
