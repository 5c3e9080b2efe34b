"""Identity: users, projects, tokens, sessions, UNIX accounts."""
