"""Static analysis of training scripts: their source is read, never run.

`source` parses the entry script and what it imports from its own folder, each file once; `reach` follows the calls from
its first line; `facts` says what a launcher has to know.
"""
