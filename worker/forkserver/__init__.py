"""The fork server: a process that has imported torch already, from which attempts are forked instead of started anew.

Run by the job's interpreter as ``python <options> worker/forkserver/__main__.py '<options>' <descriptor> <room>``.
Its modules need only the standard library, the shim's and each other, on Python 3.10 or later, and none of them stays
importable: a job may have a package `worker` of its own.

The tree of processes is that of a plain start: the shim is forked from the server, the elastic agent from the shim, the
ranks' wrappers from the agent, and each rank from its wrapper; for another account than the worker's the server forks a
reaper in place of the shim. Only nothing is executed in between, and nothing is imported: each child raises
`Continuation` to leave its parent's functions, and goes on with its own work from the bottom of the stack
(`server.trampoline`). Wherever a program cannot be run like that, it is executed after all.
"""
