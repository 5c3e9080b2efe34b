"""What a training script does, read from its source without running it.

`source` parses the entry script and what it imports from its own folder, each file once; `reach` follows the calls from
its first line; `facts` says what a launcher has to know.
"""
