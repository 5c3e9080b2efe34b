"""A job's metrics in the forms of other tools.

What needs a package that TorchYard does not bring (`pyarrow`, `mlflow`) runs in the user's own Python: `parquet` and
`mlflow_run` are programs that read rows from their standard input.
"""
