"""Who calls: users, tokens, sessions, UNIX accounts."""
