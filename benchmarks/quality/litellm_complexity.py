"""What LiteLLM's complexity router, as released, says of each message; run in its own environment.

    python benchmarks/quality/litellm_complexity.py < messages.jsonl > found.jsonl

Messages are JSON strings, one a line; so are the answers: {"tier": ..., "score": ...}. The first
line answers with the release. No language model is called and no network is reached.
"""

import json
import os
import sys
from importlib.metadata import version

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else importing it fetches a price map


def main():
    from litellm import Router
    from litellm.router_strategy.complexity_router.complexity_router import ComplexityRouter

    router = ComplexityRouter("auto", Router(model_list=[]))
    print(json.dumps({"release": version("litellm")}))
    for line in sys.stdin:
        tier, score, _ = router.classify(json.loads(line))
        print(json.dumps({"tier": tier.value, "score": score}))


if __name__ == "__main__":
    main()
