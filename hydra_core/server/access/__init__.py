"""Who may ask: tokens and roles, rates and sizes."""
