"""Loads a proxy config with the real LiteLLM and prints what one mocked call per model costs.

Run by the test in a process of its own: python litellm_loads.py CONFIG
"""

import asyncio
import json
import sys

import yaml
from litellm import Router

with open(sys.argv[1], encoding="utf-8") as stream:  # noqa: PTH123
    config = yaml.safe_load(stream)


def cost(entry):
    """Tokens in, tokens out, USD and capabilities of one call to a model, alone in its group."""
    name = entry["model_name"]
    router = Router(model_list=[entry])
    answer = router.completion(
        model=name,
        messages=[{"role": "user", "content": "hello there"}],
        mock_response="hello to you",
    )
    info = router.get_model_list(model_name=name)[0]["model_info"]
    return [
        answer.usage.prompt_tokens,
        answer.usage.completion_tokens,
        answer._hidden_params["response_cost"],
        info["hydra_capabilities"],
    ]


try:
    from litellm.proxy.proxy_server import ProxyConfig
except ImportError:  # the proxy's own dependencies are optional
    pass
else:
    loaded = asyncio.run(ProxyConfig().get_config(config_file_path=sys.argv[1]))
    assert loaded["model_list"] == config["model_list"]
models = {one["litellm_params"]["model"].partition("/")[2]: one for one in config["model_list"]}
json.dump({name: cost(entry) for name, entry in models.items()}, sys.stdout)
