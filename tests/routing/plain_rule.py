"""The value rule as it is said, query by query: what the one decision rule is compared with."""

import math


def largest_value(success, cost_usd, value_usd):
    """The model of largest success - cost / V of each query, of equals the cheapest, the first."""
    chosen = []
    for gains, costs in zip(success.tolist(), cost_usd.tolist(), strict=True):
        net = [gain - cost / value_usd for gain, cost in zip(gains, costs, strict=True)]
        best = [i for i, one in enumerate(net) if one == max(net)]
        chosen.append(min(best, key=lambda i: (costs[i], i)))
    return chosen


def stretches(success, cost_usd):
    """Which model for every V, ascending: (model, V where it ends), for one query.

    From the cheapest model up the hull: always to the cheapest upgrade, of equals the surest.
    """
    models = range(len(success))
    at = min(models, key=lambda i: (cost_usd[i], -success[i], i))
    parts = []
    while True:
        price = {
            i: (cost_usd[i] - cost_usd[at]) / (success[i] - success[at])
            for i in models
            if success[i] > success[at]
        }
        end = min(price.values(), default=math.inf)
        parts.append((at, end))
        if math.isinf(end):
            return parts
        at = min((i for i in price if price[i] == end), key=lambda i: (-success[i], i))
