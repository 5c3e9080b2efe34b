"""Nodes: registration, lists, maintenance, reservations, the network between them."""
