"""The attempts on the node's disk: their folders, the files that jobs have written, and what stays of them."""
