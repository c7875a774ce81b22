"""Which context a message needs: the paper's tiers (section "Context Tiering").

T1 names or carries context of the user's own project; T2 leans on a repository or on earlier turns
without giving them; T3 stands alone. Only what a text shows is used; a message that states its tier
keeps it. Rules, not a model: they are cheap, the same everywhere, and can be read.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["tier_of"]

_PATH: Final = re.compile(
    r"(?:^|[\s`'\"(])(?:\.{1,2}/|~/|/)[\w.-]+(?:/[\w.-]+)*"
    r"|(?:^|[\s`'\"(])[\w.-]+(?:/[\w.-]+){2,}"
    r"|[\w/-]+\.(?:py|tsx?|jsx?|go|rs|java|kt|cs|cpp|hpp|rb|php|swift|sql|ya?ml|toml|json|md|html|"
    r"css|vue|ipynb|sh|txt|log|csv|lock|env)\b"
)
_URL: Final = re.compile(r"\w+://\S+")
_ATTACHED: Final = re.compile(r"(?:^|\s)@[\w./-]*[/.][\w./-]+|#file:|#selection|#editor")
_TRACE: Final = re.compile(r"Traceback \(most recent|^\s+at \S+\(.*:\d+|:\d+:\d+: error", re.M)
#: Words that point at something outside the message, language by language.
_POINTING: Final = re.compile(
    r"\b(?:this|these|the|my|our) (?:\w+ )?(?:repo(?:sitory)?|project|codebase|code|function|class|"
    r"file|method|tests?|build|branch|pr|app|bug|error|component|module)\b"
    r"|^\s*(?:proceed|continue|go on|go ahead|do it|yes|ok(?:ay)?|try again|fix it|again)\b"
    r"|\b(?:este|esta|el|la|mi|nuestro) (?:repositorio|proyecto|código|función|archivo|error)\b"
    r"|\b(?:este|esta|o|a|meu|nosso) (?:repositório|projeto|código|função|arquivo|erro)\b"
    r"|\b(?:ce|cette|le|la|mon|notre) (?:dépôt|projet|code|fonction|fichier|erreur)\b"
    r"|\b(?:diese[rsn]?|das|die|den|mein|unser) (?:projekt|code|funktion|datei|fehler|tests?)\b"
    r"|\b(?:questo|questa|il|la|mio|nostro) (?:progetto|codice|funzione|file|errore)\b"
    r"|\b(?:этот|эту|эта|наш|мой) (?:проект|код|функци\w+|файл|ошибк\w+)\b"
    r"|\b(?:ten|ta|tę|mój|nasz) (?:projekt|kod|funkcj\w+|plik|błąd)\b"
    r"|\bbu (?:proje|kod|fonksiyon|dosya|hata)\w*|\b(?:proyek|kode|fungsi|file|galat) ini\b"
    r"|\b(?:dự án|mã|hàm|tệp|lỗi) này\b|هذا (?:المشروع|الكود|الملف|الخطأ)|هذه الدالة"
    r"|(?:这个|此|该|当前)(?:项目|仓库|代码|函数|文件|错误|类)|^继续"
    r"|(?:この|その)(?:プロジェクト|コード|関数|ファイル|エラー|リポジトリ)|^続けて"
    r"|이 (?:프로젝트|코드|함수|파일|오류)|^계속|(?:โปรเจกต์|โค้ด|ฟังก์ชัน|ไฟล์)นี้",
    re.IGNORECASE,
)  # fmt: skip


def tier_of(text: str) -> int:
    """1 where context is attached or named, 2 where it is only pointed at, else 3."""
    prose = _URL.sub(" ", text)
    if _ATTACHED.search(prose) or _TRACE.search(prose):
        return 1
    pointing = _POINTING.search(prose) is not None
    if _PATH.search(prose):
        return 1
    return 2 if pointing else 3
