"""The servers that answer: who serves which model, one call, its tokens, how healthy it is."""
