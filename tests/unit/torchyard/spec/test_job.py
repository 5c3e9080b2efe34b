"""What a spec may ask for, and what it is told otherwise."""

from typing import Any, get_args

import pytest
from pydantic import ValidationError

from torchyard.recipe.strategies import StrategyNoun
from torchyard.spec import JobSpec


def spec(**fields: Any) -> JobSpec:
    return JobSpec.model_validate(({} if "recipe" in fields else {"command": ["train.py"]}) | fields)


def refusal(**fields: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        spec(**fields)
    return str(caught.value)


@pytest.mark.parametrize(
    ("launcher", "local", "world"), [("torchrun", 2, 6), ("launch", 2, 6), ("python", 1, 3), ("none", 1, 3)]
)
def test_ranks_are_counted_by_process(launcher: str, local: int, world: int) -> None:
    found = spec(launcher=launcher, resources={"gpus": 2, "nodes": 3})
    assert (found.local_world_size, found.world_size) == (local, world)


def test_bounds_of_nodes() -> None:
    assert "resources.nodes" in refusal(resources={"nodes": 0})
    assert "resources.nodes" in refusal(resources={"nodes": 65})
    assert "network_interface" in refusal(resources={"network_interface": "eth0; rm"})
    assert spec(resources={"nodes": 2, "network_interface": "ib0"}).resources.network_interface == "ib0"


def test_a_job_with_a_network_of_its_own_keeps_to_one_node_and_its_loopback() -> None:
    assert not spec().isolated
    assert spec(network="isolated").isolated
    assert "take resources.nodes 1" in refusal(network="isolated", resources={"nodes": 2})
    assert "leave resources.network_interface out" in refusal(
        network="isolated", resources={"network_interface": "eth0"}
    )


STRATEGIES = [kind.model_fields["name"].default for kind in get_args(get_args(StrategyNoun)[0])]


@pytest.mark.parametrize("name", STRATEGIES)
def test_strategies_of_one_node_refuse_several_with_the_field_and_the_mend(name: str) -> None:
    gpus = 1 if name == "single" else 4
    resources = {"gpus": gpus, "nodes": 2}
    strategy = spec(recipe={"strategy": name}, resources={"gpus": gpus}).recipe
    assert strategy is not None
    if strategy.strategy.spans_nodes:
        assert spec(recipe={"strategy": name}, resources=resources).world_size == 2 * gpus or name == "model_parallel"
    else:
        message = refusal(recipe={"strategy": name}, resources=resources)
        assert f"resources.nodes is 2, but recipe.strategy {name} keeps to one node: take resources.nodes 1" in message


def test_ranks_of_several_nodes_do_not_meet_in_a_file() -> None:
    resources = {"gpus": 2, "nodes": 2}
    message = refusal(recipe={"strategy": "ddp", "rendezvous": "file"}, resources=resources)
    assert "take rendezvous: env or tcp" in message
    assert spec(recipe={"strategy": "ddp", "rendezvous": "tcp"}, resources=resources).world_size == 4


def test_nccl_without_a_gpu_is_refused_with_the_mend() -> None:
    said = refusal(recipe={"backend": "nccl"}, resources={"gpus": 0})
    assert "recipe.backend nccl needs GPUs, but resources.gpus is 0: take backend: auto or gloo" in said
    assert spec(recipe={"backend": "nccl"}, resources={"gpus": 1}).recipe


@pytest.mark.parametrize("name", ["NODE_RANK", "GROUP_RANK", "MASTER_PORT"])
def test_the_launchers_variables_are_its_own(name: str) -> None:
    assert f"{name} is set by the launcher" in refusal(env={name: "1"})


def test_of_our_own_variables_a_spec_sets_the_parameters_of_a_trial_alone() -> None:
    assert spec(env={"TORCHYARD_PARAMETERS": "{}"}).env == {"TORCHYARD_PARAMETERS": "{}"}
    assert "TORCHYARD_TOKEN is set by the launcher" in refusal(env={"TORCHYARD_TOKEN": "x"})


def test_what_comes_after_others_is_named_shortly_or_in_full() -> None:
    short = spec(after=[12, "grp-1"]).after
    assert short is not None
    assert (short.jobs, short.need, short.when) == (("12", "grp-1"), "all", "success")
    assert spec(after=12).after == spec(after={"jobs": ["12"]}).after
    assert "after.need" in refusal(after={"jobs": ["12"], "need": "most"})
