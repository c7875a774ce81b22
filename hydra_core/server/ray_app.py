"""The service as a Ray Serve application: `serve run hydra_core.server.ray_app:app`.

Each replica is set up by HYDRA_SERVE as a worker of `serve` is; give it `redis`, so that replicas
agree on a conversation's model, and a `log` folder that each node can write.
"""

from typing import Any

from ray import serve

from hydra_core.server.run import app_from_environment

_replica: Any = serve.ingress(app_from_environment)()
app: Any = serve.deployment(name="hydra-router", num_replicas=2, max_ongoing_requests=100)(
    _replica
).bind()
