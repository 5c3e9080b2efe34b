"""The node's end of the control plane: registration, requests, and when to make them."""
