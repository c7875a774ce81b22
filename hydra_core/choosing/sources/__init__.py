"""Where a catalog's shortfalls come from, what each source gains, and what can be promised."""
