"""The forms that clients and upstreams speak: Chat Completions, Messages and Responses."""
