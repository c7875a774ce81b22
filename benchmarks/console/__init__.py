"""The console in a real browser: latency and memory."""
