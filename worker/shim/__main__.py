"""The shim's command line; isolated mode leaves the folder of our modules off the path, so it is named here."""

import sys

sys.path.append(__file__.rpartition("/worker/")[0])

from worker.shim.supervise import main

if __name__ == "__main__":
    main(sys.argv[1:])
