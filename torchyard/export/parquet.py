"""Run by the user's own Python: rows of CSV from standard input into the Parquet file that it is given."""

import sys

if __name__ == "__main__":
    sys.path.pop(0)  # this folder: its modules are no packages of the user's
    import pyarrow
    from pyarrow import csv, parquet

    types = {
        "name": pyarrow.string(),
        "rank": pyarrow.int64(),
        "step": pyarrow.int64(),
        "time": pyarrow.float64(),
        "value": pyarrow.float64(),
    }
    options = csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False)
    parquet.write_table(csv.read_csv(sys.stdin.buffer, convert_options=options), sys.argv[1])
