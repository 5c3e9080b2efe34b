"""Part that runs inside a job: standard library only, Python 3.9, any torch or none."""
