import pytest

from torchyard.analysis import launch_commands
from torchyard.spec import Launcher


@pytest.mark.parametrize(
    ("typed", "command", "launcher"),
    [
        ("torchrun train.py --lr 1", "python train.py --lr 1", Launcher.TORCHRUN),
        ("/env/bin/torchrun --standalone --nnodes=1 train.py", "python train.py", Launcher.TORCHRUN),
        ("torchrun --nproc-per-node gpu --rdzv_backend c10d train.py", "python train.py", Launcher.TORCHRUN),
        ("torchrun -r 3 -t 3 -m pkg.train --x", "python -m pkg.train --x", Launcher.TORCHRUN),
        ("torchrun --module pkg.train", "python -m pkg.train", Launcher.TORCHRUN),
        ("python3 -u -m torch.distributed.run --standalone train.py", "python train.py", Launcher.TORCHRUN),
        ("python -m torch.distributed.launch --nproc_per_node=2 t.py", "python t.py", Launcher.LAUNCH),
        ("python -m torch.distributed.launch --use_env t.py", "python t.py", Launcher.TORCHRUN),
        ("torchrun --no-python ./run.sh", "torchrun --no-python ./run.sh", Launcher.NONE),
        ("torchrun --unheard-of t.py", "torchrun --unheard-of t.py", Launcher.NONE),
        ("torchrun --help", "torchrun --help", Launcher.NONE),
        ("accelerate launch --num_processes 2 t.py", "accelerate launch --num_processes 2 t.py", Launcher.NONE),
        ("deepspeed t.py", "deepspeed t.py", Launcher.NONE),
        ("mpirun -np 2 python t.py", "mpirun -np 2 python t.py", Launcher.NONE),
    ],
)
def test_what_a_launcher_by_hand_becomes(typed: str, command: str, launcher: Launcher) -> None:
    found = launch_commands.understand(typed.split())
    assert found is not None
    assert (" ".join(found.command), found.launcher) == (command, launcher)


@pytest.mark.parametrize("typed", ["python train.py", "python -m pkg torchrun", "./torchrun.sh", "python torchrun.py"])
def test_other_commands_have_none(typed: str) -> None:
    assert launch_commands.understand(typed.split()) is None


def test_what_it_asks_for_is_kept() -> None:
    found = launch_commands.understand(["torchrun", "--nnodes", "1:4", "--nproc-per-node=8", "t.py"])
    assert found is not None
    assert (found.processes, found.nodes) == (8, 4)
    assert found.left_out == ("torchrun", "--nnodes", "1:4", "--nproc-per-node=8")
