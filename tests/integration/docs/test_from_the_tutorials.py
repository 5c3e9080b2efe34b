"""Blocks of docs/from-the-tutorials.md are run, and the Chinese page has the same ones.

`tests/e2e/test_tutorial_commands.py` types its command lines.
"""

import ast
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from torch.distributed import launch
from torch.distributed import run as torchrun
from typer.core import TyperGroup

from tests.support import pages, ranks
from tests.support.attempt import AttemptFolder
from tests.support.pages import Block
from torchyard.analysis import findings
from torchyard.analysis.scripts import replicas, source
from torchyard.cli.main import app
from torchyard.injob import layout
from torchyard.recipe.data import Synthetic
from torchyard.spec import JobSpec
from trainer import command
from trainer.run import run
from trainer.strategies import STRATEGIES

DOCS = Path(__file__).parents[3] / "docs"
ENGLISH = DOCS / "from-the-tutorials.md"
BLOCKS = pages.blocks(ENGLISH)
SETTING, *PYTHON = [block for block in BLOCKS if block.language == "python" and not block.has("noted")]
TOGETHER = [block for block in PYTHON if not block.follows]
FOLLOWED = [block for block in PYTHON if block.follows]
NOTED = [block for block in BLOCKS if block.language == "python" and block.has("noted")]
YAML = [block for block in BLOCKS if block.language == "yaml"]
RECIPES = [block for block in YAML if "command:" not in block.code]
SHELL = [line for block in BLOCKS if block.language == "sh" for line in block.code.splitlines()]


@pytest.mark.parametrize("world", [1, 2])
def test_blocks_do_what_their_assertions_say(world: int, tmp_path: Path) -> None:
    ranks.run(pages.run, world, SETTING, [block for block in TOGETHER if block.ranks == world], cwd=tmp_path)


@pytest.mark.parametrize("block", FOLLOWED, ids=str)
def test_attached_scripts_leave_curves_and_a_checkpoint(block: Block, tmp_path: Path) -> None:
    attempt = AttemptFolder(tmp_path)
    environment = attempt.environment(checkpoint_every=3600)
    ranks.run(pages.run, block.ranks, SETTING, [block], environment=environment, cwd=tmp_path)
    steps = list(attempt.series("loss"))
    assert steps == list(range(1, len(steps) + 1)) != []
    assert [int(each.name.removeprefix("step-")) for each in attempt.checkpoints()][-1] == steps[-1]


@pytest.mark.parametrize("block", [block for block in PYTHON if block.has("wrong")], ids=str)
def test_what_is_wrong_is_shown_to_be(block: Block) -> None:
    assert block.raises or any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(block.code)))


@pytest.mark.parametrize("block", NOTED, ids=str)
def test_submission_notes_what_the_page_says(block: Block) -> None:
    program = source.program({"train.py": block.code}.get, "train.py", None)
    assert program is not None
    notes = [*findings.in_script(program.entry), *replicas.notes(program)]
    stated = [line.removeprefix("# ") for line in block.code.splitlines() if line.startswith("# train.py:")]
    assert stated
    for each in stated:
        assert [note for note in notes if note.startswith(each)], (each, notes)


def spec_of(block: Block) -> JobSpec:
    content = yaml.safe_load(block.code)
    return JobSpec.model_validate(content if "command" in content else {"recipe": {}, **content})


@pytest.mark.parametrize("block", RECIPES, ids=str)
def test_recipes_train(block: Block, tmp_path: Path) -> None:
    """With all the ranks that they ask for, on synthetic samples of their data's shape: a step or two."""
    spec = spec_of(block)
    given = spec.recipe
    assert given is not None
    devices = spec.resources.gpus * spec.resources.nodes
    processes = given.strategy.processes(devices)
    samples = given.effective_batch(processes, devices)
    data = Synthetic(samples=samples, validation_samples=16, shape=given.data.sample_shape or (1, 8, 8))
    recipe = given.model_copy(update={"data": data, "epochs": int(given.schedule.warmup) + 1, "log_every": 1})
    attempt = AttemptFolder(tmp_path)
    environment = attempt.environment() | {layout.DEVICES: str(devices)}
    with ranks.started(run, processes, recipe, environment=environment, cwd=tmp_path) as started:
        started.results()
        assert f"effective batch {samples}" in started.output(0)
    proof = json.loads((tmp_path / layout.OUTPUT / "strategy.json").read_text())
    assert proof["strategy"] == given.strategy.name
    assert len(proof["ranks"]) == processes
    assert sorted(attempt.series("train/loss")) == list(range(1, recipe.epochs + 1))
    assert attempt.series("val/accuracy")
    assert attempt.checkpoints()


def test_specs_of_own_scripts_are_valid() -> None:
    commands = [block for block in YAML if block not in RECIPES]
    assert commands
    for block in commands:
        spec_of(block)


def test_what_the_page_says_is_to_be_seen(tmp_path: Path) -> None:
    """Of its first recipe, balanced DataParallel, on a few samples."""
    spec = JobSpec.model_validate(yaml.safe_load(YAML[0].code))
    assert spec.recipe is not None
    recipe = spec.recipe.model_copy(update={"data": Synthetic(samples=16), "epochs": 1})
    attempt = AttemptFolder(tmp_path)
    ranks.run(run, 1, recipe, environment=attempt.environment() | {layout.DEVICES: str(spec.resources.gpus)})
    proof = json.loads((tmp_path / layout.OUTPUT / "strategy.json").read_text())
    assert (proof["ranks"][0]["replicas"], proof["ranks"][0]["deals"]["pass"]) == (3, [[2, 3, 3]])
    for metric in ("train/loss", "train/accuracy", "val/loss", "val/accuracy", "throughput", "data_wait"):
        assert f"`{metric}`" in ENGLISH.read_text()
        assert attempt.series(metric), metric


@pytest.mark.parametrize("line", SHELL)
def test_commands_are_such(line: str) -> None:
    parse(shlex.split(line, comments=True))


def test_what_is_no_command_is_noticed() -> None:
    with pytest.raises(Exception, match="No such command"):
        parse(["yard", "absent"])
    with pytest.raises(Exception, match="No such option"):
        parse(["yard", "checkpoints", "average", "1", "--absent"])


def parse(words: list[str]) -> None:
    """Reads a command line as its program does; leaves by SystemExit or an exception when it does not take it."""
    match words:
        case ["yard", *rest]:
            _parse_yard(typer.main.get_command(app), "yard", rest)
        case ["torchrun", *rest]:
            torchrun.parse_args(rest)
        case ["python", "-m", "torch.distributed.launch", *rest]:
            launch.parse_args(rest)
        case ["python", "-m", "trainer", *rest]:
            command._parser().parse_args(rest)
        case _:
            raise AssertionError(words)


def _parse_yard(entry: Any, name: str, words: list[str], parent: Any = None) -> None:
    context = entry.make_context(name, words, parent=parent)
    if isinstance(entry, TyperGroup):
        found, inner, rest = entry.resolve_command(context, [*context._protected_args, *context.args])
        _parse_yard(inner, str(found), rest, context)


def test_the_chinese_page_has_the_same_blocks() -> None:
    """They differ in comments alone, so what is run of one page is run of the other."""
    chinese = pages.blocks(DOCS / "from-the-tutorials.zh-CN.md")
    assert [without_comments(block) for block in chinese] == [without_comments(block) for block in BLOCKS]


def without_comments(block: Block) -> tuple[str, tuple[str, ...], Any]:
    match block.language:
        case "python":
            stated = block.message if block.raises or block.has("noted") else None
            return block.language, block.words, (ast.dump(ast.parse(block.code)), stated)
        case "yaml":
            return block.language, block.words, yaml.safe_load(block.code)
        case _:
            lines = [shlex.split(line, comments=True) for line in block.code.splitlines()]
            return block.language, block.words, lines


@pytest.mark.parametrize("page", ["from-the-tutorials.md", "from-the-tutorials.zh-CN.md"])
def test_links_lead_somewhere(page: str) -> None:
    text = (DOCS / page).read_text()
    headings = {anchor(line.lstrip("# ")) for line in text.splitlines() if re.match("#+ ", line)}
    sections = re.findall(r"\]\(#([^)]+)\)", text)
    assert sections
    assert not set(sections) - headings
    assert not [path for path in re.findall(r"\]\(([^)#]+)\)", text) if not (DOCS / path).exists()]


def anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_every_strategy_and_every_section_is_on_both_pages() -> None:
    english, chinese = ((DOCS / name).read_text() for name in ("from-the-tutorials.md", "from-the-tutorials.zh-CN.md"))
    assert len(re.findall("^## ", english, re.MULTILINE)) == len(re.findall("^## ", chinese, re.MULTILINE))
    recipes = [
        JobSpec.model_validate({"recipe": {}, **yaml.safe_load(block.code)}).recipe
        for block in YAML
        if "command" not in block.code
    ]
    assert {recipe.strategy.name for recipe in recipes if recipe} >= STRATEGIES.keys() - {"single"}
