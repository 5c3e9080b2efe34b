"""The shim: the process that stays with one attempt from its first instruction to its result.

Run as ``python -I -S worker/shim/__main__.py <launch.json> <descriptor>…``. Its modules need only the standard library
and each other, and all are loaded before the job starts, so that an upgrade of the worker cannot pull the ground from
under it. The descriptors hold the attempt's lock and those of its GPUs: they stay open as long as the shim lives, and
close with it whatever kills it.

It is the subreaper of everything the job forks, owns the stop path and the time limit, and writes ``result.json``.
The wrapper of each rank under torchrun (`rank`) lies here too, as it also needs nothing but the standard library.
"""
