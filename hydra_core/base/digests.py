"""SHA-256 as it is written down everywhere: 64 hex digits."""

import hashlib
import re
from pathlib import Path
from typing import Final

#: What such a digest looks like.
SHA256: Final = re.compile(r"[0-9a-f]{64}")


def text_sha256(text: str) -> str:
    """Of any text, half a surrogate pair included, as UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def file_sha256(path: Path) -> str:
    """Of a file's bytes, read in pieces; OSError where it cannot be read."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
