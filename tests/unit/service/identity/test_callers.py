from service.identity.callers import expand, hash_secret, new_secret


def test_scopes_imply_lesser_ones_and_nodes_none() -> None:
    assert expand(["admin"]) == {"admin", "submit", "read"}
    assert expand(["submit"]) == {"submit", "read"}
    assert expand(["node"]) == {"node"}
    assert expand(["unknown"]) == set()


def test_secrets_are_long_and_never_the_same() -> None:
    first, second = new_secret(), new_secret()
    assert first != second
    assert first.startswith("ty_")
    assert len(first) >= 43
    assert len(hash_secret(first)) == 64
