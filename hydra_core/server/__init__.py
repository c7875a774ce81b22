"""The router in front of live traffic: decisions, pass-through, health, metrics, hot reload."""
