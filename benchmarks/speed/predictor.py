"""Latency, throughput, cold start and size of a predictor bundle.

    python -m benchmarks.speed.predictor [--bundle DIR] [--seconds S] [--json]

Latency is whole: signals, tokens and the graph, one message at a time on one thread. Throughput is
`predict_batches` over mixed lengths in sixteen languages. "padded batch" is the bare graph on 32
rows, which the predictor does not use because a row's scores then depend on the others ("drift").
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime

from hydra_core.predictor.bundle import SHIPPED, Bundle, load_bundle
from hydra_core.predictor.onnx_predictor import Predictor

TOKENS = (32, 128, 512)
BUDGET_MS = {32: 5.0, 128: 20.0, 512: 90.0}
SENTENCES = (
    "The nightly job stops after an hour and nobody knows which of its parts is to blame. ",
    "Compare both drafts and tell me, in two lines, which of them a customer would rather read. ",
    "Le rapport du mois doit partir ce soir, mais deux chiffres ne concordent pas. ",
    "Der Dienst antwortet seit dem Umzug langsam, obwohl kaum jemand ihn benutzt. ",
    "Quiero una función que lea el archivo, quite las filas vacías y guarde el resto. ",
    "Przenieś ustawienia do jednego pliku i opisz krótko, co się zmieniło. ",
    "请把这份说明改写得更简短，并列出三个例子。",
    "この関数が遅い理由を調べて、直し方を二つ提案してください。",
    "로그를 읽고 어제부터 실패한 요청만 표로 정리해 주세요. ",
    "Проверь, почему отчёт пустой, и добавь тест на этот случай. ",
    "اقرأ الملف واكتب ملخصا قصيرا لكل قسم فيه. ",
    "ช่วยอธิบายโค้ดนี้แล้วเสนอวิธีที่ง่ายกว่า ",
    "Hãy viết một câu truy vấn tìm khách hàng chưa mua gì trong tháng này. ",
    "Tolong perbaiki tampilan halaman ini supaya rapi di layar kecil. ",
    "Bu tabloyu aylara göre topla ve en büyük üç farkı göster. ",
    "def total(rows):\n    return sum(row['amount'] for row in rows if row)\n",
)
COLD = """
import sys, time
start = time.perf_counter()
from pathlib import Path
from hydra_core.predictor.bundle import load_bundle
from hydra_core.predictor.onnx_predictor import Predictor
Predictor(load_bundle(Path(sys.argv[1]))).predict(["Fix the failing test"])
print(time.perf_counter() - start)
"""


def message_of(predictor: Predictor, tokens: int) -> str:
    """A message that the model sees as `tokens` tokens, or as nearly as can be."""
    text = SENTENCES[0] * tokens
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        found = predictor.predict([text[:middle]])
        fits = found.tokens[0] <= tokens and not found.truncated[0]
        low, high = (middle, high) if fits else (low, middle - 1)
    return text[:low]


def latency(predictor: Predictor, tokens: int, seconds: float) -> dict[str, float]:
    """p50 and p99 in milliseconds of scoring one message of so many tokens."""
    text = message_of(predictor, tokens)
    for _ in range(3):
        predictor.predict([text])
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 30 or time.perf_counter() < end:
        start = time.perf_counter()
        predictor.predict([text])
        times.append((time.perf_counter() - start) * 1e3)
    p50, p99 = np.percentile(times, [50, 99])
    seen = int(predictor.predict([text]).tokens[0])
    return {"tokens": seen, "p50_ms": float(p50), "p99_ms": float(p99), "runs": len(times)}


def messages(count: int) -> list[str]:
    """Different messages in sixteen languages; the median is near 100 characters, as in chats."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(4.6, 1.1, count), 8, 4000).astype(int)
    picks = rng.integers(0, len(SENTENCES), count)
    pairs = zip(picks, lengths, strict=True)
    return [f"{i}. {(SENTENCES[p] * 200)[:n]}" for i, (p, n) in enumerate(pairs)]


def throughput(predictor: Predictor, texts: list[str], workers: int) -> float:
    """Messages per second of `predict_batches`."""
    start = time.perf_counter()
    predictor.predict_batches(texts, workers=workers)
    return len(texts) / (time.perf_counter() - start)


def padded_batch(bundle: Bundle, seconds: float, rows: int = 32, tokens: int = 64) -> dict:
    """The bare graph: milliseconds per row alone and in a batch; how far a row's scores move."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(
        str(bundle.path / bundle.model), options, providers=["CPUExecutionProvider"]
    )
    ids = np.random.default_rng(0).integers(5, 200, (rows, tokens)).astype(np.int64)
    every = {
        "input_ids": ids,
        "attention_mask": np.ones_like(ids),
        "token_type_ids": np.zeros_like(ids),
        "position_ids": np.broadcast_to(np.arange(tokens), ids.shape).copy(),
    }
    feeds = {node.name: every[node.name] for node in session.get_inputs()}
    alone = {name: value[:1] for name, value in feeds.items()}
    times = {}
    for name, feed, size in (("alone", alone, 1), ("batch", feeds, rows)):
        spent: list[float] = []
        end = time.perf_counter() + seconds
        while len(spent) < 5 or time.perf_counter() < end:
            start = time.perf_counter()
            session.run(None, feed)
            spent.append((time.perf_counter() - start) / size * 1e3)
        times[f"{name}_ms"] = float(np.median(spent))
    drift = np.abs(session.run(None, feeds)[0][0] - session.run(None, alone)[0][0]).max()
    return {**times, "rows": rows, "tokens": tokens, "drift": float(drift)}


def cold_start(folder: Path, runs: int = 5) -> float:
    """Median seconds of a fresh process from the first import to the first score."""
    command = [sys.executable, "-c", COLD, str(folder)]
    done = [
        subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(runs)
    ]
    return float(np.median([float(run.stdout) for run in done]))


def measure(folder: Path, seconds: float) -> dict:
    bundle = load_bundle(folder)
    predictor = Predictor(bundle)
    texts = messages(600)
    cores = os.cpu_count() or 1
    return {
        "bundle": f"{bundle.name} {bundle.version}",
        "size_mb": bundle.size_bytes / 1e6,
        "cold_start_s": cold_start(folder),
        "latency": {str(t): latency(predictor, t, seconds) for t in TOKENS},
        "messages_per_s": {
            str(n): throughput(predictor, texts, n) for n in sorted({1, min(2, cores), cores})
        },
        "padded_batch": padded_batch(bundle, seconds / 2),
    }


def table(found: dict) -> str:
    lines = [
        f"| predictor bundle {found['bundle']} | measured | bound |",
        "|---|---|---|",
        f"| size | {found['size_mb']:.1f} MB | 40 MB |",
        f"| cold start, import to first score | {found['cold_start_s']:.2f} s | 2.5 s |",
    ]
    for tokens, row in found["latency"].items():
        bound = f"p50 {BUDGET_MS[int(tokens)]:.0f} ms"
        value = f"p50 {row['p50_ms']:.1f} ms, p99 {row['p99_ms']:.1f} ms"
        lines.append(f"| {row['tokens']} tokens, one thread | {value} | {bound} |")
    for workers, rate in found["messages_per_s"].items():
        lines.append(f"| mixed messages, {workers} worker(s) | {rate:.0f} per second | |")
    bare = found["padded_batch"]
    where = f"bare graph at {bare['tokens']} tokens, alone / in a batch of {bare['rows']}"
    value = f"{bare['alone_ms']:.1f} / {bare['batch_ms']:.1f} ms, drift {bare['drift']:.1e}"
    lines.append(f"| {where} | {value} | |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Benchmark a predictor bundle.")
    parser.add_argument("--bundle", type=Path, default=SHIPPED)
    parser.add_argument("--seconds", type=float, default=4.0, help="per latency figure")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.bundle, options.seconds)
    print(json.dumps(found, indent=2) if options.json else table(found))


if __name__ == "__main__":
    main()
