"""Who may come in: addresses, sign-in, and who is acting."""
