"""DivideShuffle: keeps the replicas of all ranks together around an existing training loop."""

from __future__ import annotations

import html
import logging
import operator
import weakref
from datetime import timedelta
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, List, Literal, Optional, Sequence, Tuple, Type, TypeVar, Union

import torch
import torch.distributed as dist
from torch import nn
from torch.utils import dlpack

from . import _dssync
from ._dssync import Error, InputError
from ._adam import AdamSteps
from ._checks import check_forward, check_kinds, check_model, check_optimizers, not_finite, own_optimizers
from ._joining import discovered, ends_with_program, join, telling_others
from ._layers import PassCounter, can_step_in_parts, install, on_forward
from ._optimizers import OneOrMore, Optimizers, state_kinds
from ._steps import StepHooks, release
from .planning import DEFAULT_DISAGREEMENT, AnyTopology, Plan, Topology, as_topology

NamedTensors = List[Tuple[str, torch.Tensor]]
StateOfOptimizer = List[Tuple[str, NamedTensors]]
Overlap = Union[Literal["auto", "layered", "combine", "none"], bool]
ExactInside = Union[Literal["none", "auto", "host", "rack", "site"], int]
State = Literal["auto", "inferred", "rotating", "averaged", "local"]
Averageable = Union[nn.Module, torch.Tensor]

Result = TypeVar("Result")

LOGGER = logging.getLogger("dssync")
DEFAULT_TIMEOUT = timedelta(minutes=30)  # as torch.distributed's
FORWARDS_WITHOUT_STEP = 1000  # after so many passes a warning says that nobody steps


class DivideShuffle:
    """Averages the parameters of all ranks in changing groups, after every step of the optimizer.

        sync = dssync.DivideShuffle(model, optimizer, topology="network.yaml")
        for inputs, labels in loader:
            loss_function(model(inputs), labels).backward()
            sync.step()  # instead of optimizer.step()
            optimizer.zero_grad()
        sync.consolidate()  # one model on all ranks: before evaluating and saving

    With attach=True the loop keeps its optimizer.step(), whoever calls it.

    Every rank makes the same calls in the same order. Needs an initialised process group; all ranks start with rank 0's
    values. With one process there is nothing to average, whatever the topology. Not thread-safe. After an exception from here
    the object can only be dropped.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: OneOrMore,
        *,
        topology: AnyTopology,
        attach: bool = False,
        disagreement: float = DEFAULT_DISAGREEMENT,
        overlap: Overlap = "auto",
        adapt: bool = False,
        plan: Optional[Plan] = None,
        group_limit: int = 0,
        published: bool = False,
        exact_inside: ExactInside = "none",
        accumulates: Optional[bool] = None,
        state: State = "auto",
        state_period: int = 8,
        noise_correction: bool = True,
        check_finite: bool = True,
        warmup_steps: int = 0,
        timeout: timedelta = DEFAULT_TIMEOUT,
    ) -> None:
        """
        optimizer: one, or a list of them that hold the model's parameters together
        topology: the network, with one worker for each rank: a Topology, the file that describes it, or a dict with what such a
            file has; "auto": the ranks measure it
        attach: optimizer.step() synchronises, whoever calls it (PyTorch 2); otherwise sync.step() has to be called instead
        disagreement: how far the replicas may stay apart, overlap included; smaller is closer and slower
        overlap: when averages run. "layered": from the backward pass to the next forward pass, which waits for each module's
            parameters alone; the result is that of "none": after each step. "combine": during the whole next iteration, which
            lets replicas differ more. "auto": the best of these. True is "auto", False is "none"
        adapt: watch the links while training, and plan again where they become slower or faster
        plan: what to follow, instead of the fastest plan for the topology, the model and the disagreement
        group_limit, published, exact_inside: as for dssync.plan()
        accumulates: whether gradients of several backward passes make up a step. With exact_inside gradients are averaged during
            the backward pass if not, otherwise at the step. None: the first three steps show it
        state: of the optimizer (momentum): "inferred" from how averages move the parameters (Adam, AdamW), "rotating", a part at
            a time with the parameters, "averaged", all of it, or "local". "auto": inferred for Adam and AdamW, otherwise rotating
        state_period: of "rotating": in how many parts
        noise_correction: Adam's steps get as long as everyone's mean gradient would make them; for Adam and AdamW
        check_finite: a gradient that is infinite or no number is an error on all ranks, before anybody averages what it does
        warmup_steps: global averages before the schedule starts
        timeout: for joining, connecting, and each stage of an average
        """
        check_kinds(model, optimizer)
        self.optimizer: OneOrMore = own_optimizers(optimizer, attach)
        self._optimizers = Optimizers(self.optimizer)
        self._model = model
        self._given = topology
        self._plan = plan
        self._accumulates = accumulates
        self._corrects_noise = noise_correction
        self._checks_finite = check_finite
        self._timeout = timeout
        self._options = engine_options(
            disagreement_limit=disagreement,
            group_limit=group_limit,
            published=published,
            exact_inside=exact_inside,
            adapt=adapt,
            overlap=overlap,
            state="rotating" if state == "auto" and self._optimizers.is_mixed else state,
            state_period=state_period,
            noise_correction=noise_correction,
            sync_warmup_iterations=warmup_steps,
        )
        for one in self._optimizers:
            release(one)
        self._can_step_in_parts = all(can_step_in_parts(one) for one in self._optimizers)
        self._has_warned: Dict[str, bool] = {}
        self._loads = _Loads()
        self._forwards = 0  # since the last step
        self._steps = 0
        self._start()
        self._hooks = StepHooks(self, self._optimizers, attach, self._begin_step, self._end_step)
        for module in model.modules():
            if not isinstance(module, torch.jit.ScriptModule):  # they take no hooks
                module.register_load_state_dict_post_hook(self._loads)
        on_forward(self, model, self._on_forward)
        if self.overlap == "layered":
            install(self, model, self._await, self.settle)
        self._introduce()

    def _start(self) -> None:
        """Gives the engine all that it averages. Collective."""
        model = self._model
        self._parameters: NamedTensors = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self._frozen: NamedTensors = [(name, p) for name, p in model.named_parameters() if not p.requires_grad]
        self._buffers: NamedTensors = list(model.named_buffers())
        self._held = self._optimizers.held()
        self._states: Optional[List[Any]] = None  # of the optimizers, once the engine averages what is in them
        self._bound: List[Tuple[torch.Tensor, str, torch.Tensor]] = []  # parameter, kind, tensor that the engine averages
        self._world, device = join([*model.named_parameters(), *self._buffers], self._timeout)
        with telling_others(self._world):
            check_model(model)
            check_optimizers(model, self._optimizers)
            self._adam = AdamSteps(self._optimizers, self._parameters) if self._optimizers.has_adam else None
            self.topology = self._network(device)
            is_alone = dist.get_world_size() == 1
            self._averaging = _dssync.Averaging(
                self._world,
                self.topology._native,
                self._parameters,
                self._buffers,
                self._frozen,
                _weakly(self._collect_state, []),
                _weakly(self._step_in_backward, None) if self._can_step_in_parts else None,
                adam=self._adam.table if self._adam else None,
                normalizes=len(self._optimizers.normalizing) > 0,
                plan=self._plan._native if self._plan and not is_alone else None,
                options=self._options,
            )
            ends_with_program(self._averaging)
        self._has_regions = len(self.plan.replicas) > 0
        self._has_gradients = False  # the engine was told that they are complete
        self._settings: Optional[List[Any]] = None  # with which steps were made in the backward pass
        self._places = [_with_own_storage(p) for _, p in self._parameters]  # where the engine averages them
        self._passes: Optional[PassCounter] = None
        if self._has_regions and self._accumulates is False:
            self._averaging.expect_one_backward_pass()
        elif self._has_regions and self._accumulates is None:
            self._passes = PassCounter([p for _, p in self._parameters])

    def _network(self, device: torch.device) -> Topology:
        if dist.get_world_size() == 1:
            return Topology.flat(1)
        return discovered(self._world, device) if self._given == "auto" else as_topology(self._given)

    def _introduce(self) -> None:
        if self._corrects_noise and dist.get_world_size() > 1 and self._optimizers.normalizing:
            LOGGER.warning(
                "%s: dssync does not know how this optimizer divides by the size of gradients. If it does, its steps are too "
                "short: compare with a learning rate up to the root of metrics['noise_ratio'] times larger",
                ", ".join(self._optimizers.normalizing),
            )
        if dist.get_rank() == 0:
            LOGGER.info("%s", self._summary())

    def _summary(self) -> str:
        if dist.get_world_size() == 1:
            return "one process: nothing to average"
        size = sum(p.numel() * p.element_size() for _, p in self._parameters)
        plan = self.plan
        regions = f" in {len(plan.replicas)} exact regions" if plan.replicas else ""
        ring = _dssync.format_duration(_dssync.seconds_of_ring(self.topology._native, float(size)))
        own = _dssync.format_duration(plan.cost.seconds_per_iteration + plan.inside.seconds_per_iteration)
        return (
            f"{len(plan.names)} ranks{regions}, {_short_bytes(size)} of parameters, a cycle of {len(plan.rounds)} rounds in "
            f"{plan.shards} shards, overlap {self.overlap}, S = {self.planned_disagreement:.3g} in total; averages should take "
            f"{own} per step, DistributedDataParallel's ring {ring}"
        )

    def __repr__(self) -> str:
        return f"DivideShuffle({self._summary()})"

    def _repr_html_(self) -> str:
        return f"<div>{html.escape(self._summary())}</div>{self.plan._repr_html_()}"

    def step(self, closure: Optional[Callable[[], Any]] = None, *, scaler: Optional[Any] = None) -> Any:
        """The optimizer's step, and the averages around it. With a GradScaler: scaler.step(optimizer), which may skip it.

        Gradients that were accumulated over several backward passes need one call. Returns what the optimizer returns, the
        last one of several.
        """
        if self._hooks.is_attached:
            raise InputError("this DivideShuffle is attached to its optimizer: optimizer.step() synchronises, and sync.step() would "
                             "be a second step")
        if closure is not None and scaler is not None:
            raise InputError("a GradScaler makes its step without a closure: call the closure first, then step(scaler=scaler)")
        if closure is not None and len(self._optimizers) > 1:
            raise InputError("a closure belongs to one optimizer, and there are several: call the closure first, then step()")
        if self._has_regions and closure is not None:
            raise InputError("gradients are averaged inside exact regions before the step: call the closure first, then step()")
        if self._has_regions and scaler is not None and not self._has_gradients:
            if any(_has_unscaled(scaler, one) for one in self._optimizers):
                raise InputError("gradients were unscaled before they are averaged inside exact regions: call finish_backward(), "
                                 "then unscale_()")
        result = None
        is_wanted = self._begin_step(scaler is None and closure is None)
        with self._hooks.making():
            if is_wanted and scaler is not None:
                for one in self._optimizers:
                    result = scaler.step(one)
            elif is_wanted and closure is not None:
                result = self._optimizers.all[0].step(closure)
            elif is_wanted:
                result = self._optimizers.step()
        self._end_step()
        return result

    def _begin_step(self, is_final: bool) -> bool:
        """Before the optimizers' steps. `is_final`: gradients are what these use. Returns whether they are still to be made."""
        if self._has_regions and self._hooks.is_attached and not is_final and not self._has_gradients:
            raise InputError("gradients were unscaled before they are averaged inside exact regions: call finish_backward() before "
                             "scaler.unscale_() and scaler.step()")
        self._bind_again()
        self._take_over_loads()
        is_early = self._settings is not None
        if self._checks_finite and is_final and not is_early:
            self._check_finite()
        self._has_gradients = False
        is_wanted = self._averaging.before_step(is_final=is_final)
        if not is_wanted:
            self._check_settings()
        return is_wanted

    def _end_step(self) -> None:
        """After them."""
        if self._adam:
            self._adam.refresh()
        if self._passes is not None and self._passes.is_decided():
            if self._passes.is_one():
                self._averaging.expect_one_backward_pass()
            self._passes = None
        self._averaging.after_step()
        self._forwards = 0
        self._steps += 1
        if any(p.requires_grad for _, p in self._frozen):
            self._start_again()

    def _start_again(self) -> None:
        """A parameter that was frozen is trained from now on."""
        unfrozen = [name for name, p in self._frozen if p.requires_grad]
        LOGGER.info("%s: trained from now on; planning again", ", ".join(unfrozen))
        missing = [name for name, p in self._frozen if p.requires_grad and not any(p is held for held in self._optimizers.held())]
        if missing:
            raise self._change()
        self._averaging.consolidate()
        remembered = self._averaging.iteration
        self._averaging.end()
        with torch.no_grad():  # the engine lays parameters out anew
            for _, p in self._parameters:
                p.data = p.detach().clone()
        self._start()
        self._averaging.load_state(remembered, [])

    def finish_backward(self) -> None:
        """With exact regions: averages the gradients inside this rank's region now, after the last backward(). step() and
        clip_grad_norm_() do that by themselves; call it before anything else reads gradients, such as scaler.unscale_()."""
        self._bind_again()
        self._take_over_loads()
        self._averaging.before_step(is_final=False)
        self._has_gradients = True

    def settle(self) -> None:
        """Waits until all averages are part of the parameters. With overlap "layered": before a program reads or changes them
        between step() and the next forward pass (a running mean, a constraint), other than by load_state_dict()."""
        self._take_over_loads()
        self._averaging.settle()

    def clip_grad_norm_(self, max_norm: float) -> float:
        """Instead of torch.nn.utils.clip_grad_norm_(), between backward() and step(): clips by the norm of everyone's mean
        gradient, which is estimated. One rank's own norm contains the noise of its own examples. Returns the norm. With a
        GradScaler: after scaler.unscale_(optimizer)."""
        self._has_gradients = True
        return self._averaging.clip_gradients(float(max_norm))

    def consolidate(self, *others: nn.Module, also: Iterable[Averageable] = (), state: bool = False) -> float:
        """One exact average of everyone: the same parameters and buffers on all ranks. Before evaluating and saving.

        others, also: models and tensors that are made of this model on every rank, such as torch.optim.swa_utils.AveragedModel;
        they are averaged as well. What is not a floating point number in them stays.
        state: the optimizer's state is averaged as well, but for what has no gradient on some rank so far.

        Returns how far this rank was from the average: |x_i - mean|^2.
        """
        self._bind_again()
        self._check_model()
        if self._steps == 0 and self._forwards > 0:
            raise InputError(
                f"the model was trained with {self._forwards} forward passes, but "
                + ("the optimizer that this DivideShuffle is attached to made no step: does another one step?"
                   if self._hooks.is_attached else "sync.step() was never called")
            )
        self._take_over_loads()
        replaced = self._replaced_buffers()
        with torch.no_grad():
            for ours, present in replaced:
                ours.copy_(present)
            distance = self._averaging.consolidate()
            for ours, present in replaced:
                present.copy_(ours)
            for other in [*others, *also]:
                self._averaging.average_everyone(_floating(other))
            if state:
                self._averaging.average_everyone(self._floating_state())
        return distance

    @property
    def plan(self) -> Plan:
        """What is followed."""
        return Plan._from(self._averaging.plan)

    @property
    def overlap(self) -> str:
        """When averages run: "layered", "combine" or "none"."""
        return self._averaging.overlap

    @property
    def plan_changes(self) -> List[Tuple[int, str]]:
        """With adapt: in which iterations the plan changed so far, and why."""
        return self._averaging.plan_changes

    @property
    def metrics(self) -> Dict[str, float]:
        """Figures of the last step on this rank: docs/pytorch.md."""
        sync_seconds, bytes_sent, disagreement, parameter_norm, noise_ratio = self._averaging.metrics
        return {
            "iteration": self._averaging.iteration,
            "sync_seconds": sync_seconds,
            "bytes_sent": bytes_sent,
            "disagreement": disagreement,
            "parameter_norm": parameter_norm,
            "noise_ratio": noise_ratio,
        }

    @property
    def planned_disagreement(self) -> float:
        """The total S that the plan leads to, with what overlap adds: within `disagreement`, in the same units."""
        return self._averaging.planned_disagreement

    @property
    def noise_correction(self) -> str:
        """What is done about the noise of a rank's own gradient: "corrected", "not needed", "off", "unknown optimizer"."""
        return self._averaging.noise_treatment

    def write_metrics(self, writer: Any) -> None:
        """To TensorBoard: `writer` is a torch.utils.tensorboard.SummaryWriter."""
        metrics = self.metrics
        iteration = metrics.pop("iteration")
        for name, value in metrics.items():
            writer.add_scalar(f"dssync/{name}", value, iteration)

    def state_dict(self) -> Dict[str, Any]:
        """What the engine remembers: where the schedule is, and more. Beside those of the model and the optimizer."""
        iteration, tensors = self._averaging.state()
        return {"iteration": iteration, "tensors": dict(tensors)}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._take_over_loads()
        self._averaging.load_state(state["iteration"], list(state.get("tensors", {}).items()))

    def __enter__(self) -> DivideShuffle:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """Consolidates, unless an exception is on its way: then the other ranks are told of it."""
        if error is None:
            self.consolidate()
        else:
            self._world.report_failure(f"{type(error).__name__}: {error}")

    def _collect_state(self) -> StateOfOptimizer:
        """The optimizer's state as far as there is one. The engine asks until all ranks have all of it: optimizers make a
        parameter's state when they first have a gradient for it, and a GradScaler may skip steps on some ranks."""
        kinds: Dict[str, NamedTensors] = {}
        left_out: Dict[str, str] = {}
        self._bound = []
        for name, parameter in self._parameters:
            alike, others = state_kinds(self._optimizers.state_of(parameter), parameter)
            for kind, value in alike.items():
                kinds.setdefault(kind, []).append((name, value))
                self._bound.append((parameter, kind, value))
            for kind in others:
                left_out.setdefault(kind, name)
        if kinds:
            self._states = self._optimizers.states()
        if left_out:
            self._warn_once("state", "the optimizer's state %s is not averaged: it has another shape than its parameter; every rank "
                            "keeps its own", ", ".join(f"'{kind}' (of '{name}')" for kind, name in left_out.items()))
        return list(kinds.items())

    def _floating_state(self) -> NamedTensors:
        result: NamedTensors = []
        for name, parameter in self._parameters:
            for kind, value in self._optimizers.state_of(parameter).items():
                if torch.is_tensor(value) and value.is_floating_point() and kind != "step":
                    result.append((f"{name} {kind}", value))
        return result

    def _warn_once(self, topic: str, text: str, *values: Any) -> None:
        if not self._has_warned.get(topic):
            self._has_warned[topic] = True
            LOGGER.warning(text, *values)

    def _on_forward(self) -> None:
        """Before each forward pass of the model."""
        check_forward()
        if self._averaging.overlap == "layered":
            self._bind_again()
        if not (self._model.training and torch.is_grad_enabled()):
            return
        self._forwards += 1
        if self._forwards == FORWARDS_WITHOUT_STEP:
            self._warn_once("forwards", "%d forward passes without a step of the optimizer that this DivideShuffle has: does another "
                            "one step?", self._forwards)

    def _check_finite(self) -> None:
        name = not_finite(self._parameters)
        if name is None:
            return
        what = f"the gradient of '{name}' is not finite on rank {dist.get_rank()}, in step {self._averaging.iteration + 1}"
        self._world.report_failure(what)
        raise Error(f"{what}: nobody has averaged it")

    def _await(self, parameters: Sequence[torch.Tensor]) -> None:
        """Before the forward pass of the module that owns them."""
        self._take_over_loads()
        self._averaging.await_parameters(parameters)

    def _step_in_backward(self) -> None:
        """The engine calls it while the backward pass runs, with the gradients of some parameters; all others have none."""
        if self._settings is None:
            self._settings = self._optimizers.settings()
        if self._checks_finite:
            self._check_finite()
        with self._hooks.making():
            self._optimizers.step()
        if self._adam:
            self._adam.refresh()

    def _check_settings(self) -> None:
        """Steps were made in the backward pass: what is changed before step() comes too late for them."""
        settings, self._settings = self._settings, None
        if settings is not None and settings != self._optimizers.settings():
            self._warn_once(
                "settings",
                "the learning rate (or another setting of the optimizer) was changed between backward() and step(): it counts "
                "from the next step on, because this one was made in the backward pass; change it before backward()"
            )

    def _bind_again(self) -> None:
        """After model.to() or parameter.data = ...: the new values go to where the engine averages them."""
        held = self._optimizers.held()
        if len(held) != len(self._held) or not all(map(operator.is_, held, self._held)):
            self._check_held(held)
        is_moved = False
        for (_, parameter), place in zip(self._parameters, self._places):
            if parameter.data_ptr() == place.data_ptr():
                continue
            if (parameter.dtype, parameter.shape, parameter.device.type) != (place.dtype, place.shape, place.device.type):
                raise self._change()
            with torch.no_grad():
                place.copy_(parameter)
            parameter.data = place
            is_moved = True
        if is_moved:
            self._loads.seen = True

    def _check_held(self, held: List[torch.Tensor]) -> None:
        now, trained = {id(p) for p in held}, {id(p) for _, p in self._parameters}
        if not trained <= now or not now <= trained | {id(p) for _, p in self._frozen}:
            raise self._change()
        self._held = held

    def _check_model(self) -> None:
        known = {id(p) for _, p in [*self._parameters, *self._frozen]}
        if {id(p) for p in self._model.parameters()} != known:
            raise self._change()

    def _replaced_buffers(self) -> List[Tuple[torch.Tensor, torch.Tensor]]:
        """Modules may assign new tensors to their buffers: pairs of the one that the engine averages and the present one."""
        now = list(self._model.named_buffers())
        changed = sorted({*_kinds(self._buffers)} ^ {*_kinds(now)})
        if changed:
            raise InputError(
                f"since DivideShuffle was made, buffers were added, removed or converted: {', '.join(changed)}; "
                "make a new DivideShuffle after such a change"
            )
        return [(ours, present) for (_, ours), (_, present) in zip(self._buffers, now) if present is not ours]

    def _take_over_loads(self) -> None:
        """After load_state_dict() of the optimizer or the model: what is under way are averages of the values before it."""
        now = self._optimizers.states()
        if self._states is not None and any(a is not b for a, b in zip(self._states, now)):
            self._bind_state_again()
            self._loads.seen = True
        if self._loads.seen:
            self._check_model()
            self._averaging.drop()
            self._loads.seen = False

    def _bind_state_again(self) -> None:
        """optimizer.load_state_dict() has made new tensors: their values go into those that the engine averages."""
        self._states = self._optimizers.states()
        for parameter, kind, ours in self._bound:
            state = self._optimizers.state_of(parameter)
            loaded = state.get(kind)
            if loaded is None:
                raise Error(f"the optimizer's state was replaced by one without '{kind}': make a new DivideShuffle")
            if loaded is not ours:
                state[kind] = ours.copy_(loaded)

    def _change(self) -> Error:
        """What is no longer as it was when the engine took the parameters over."""
        known = {id(p): name for name, p in [*self._parameters, *self._frozen]}
        names = {id(p): name for name, p in self._model.named_parameters()}
        held = self._optimizers.held()
        now = [*self._model.parameters(), *held]
        added = {names.get(id(p), "one that the model does not have") for p in now if id(p) not in known}
        added |= {name for name, p in self._frozen if p.requires_grad and not any(p is one for one in held)}
        gone = sorted(name for key, name in known.items() if key not in {id(p) for p in now})
        what = [f"{text} {', '.join(list_)}" for text, list_ in (("was added:", sorted(added)), ("is gone:", gone)) if list_]
        cause = f"a parameter {' and '.join(what)}" if what else "parameters were moved or converted (model.to(), model.half())"
        return InputError(f"since DivideShuffle was made, {cause}; make a new DivideShuffle after such a change")


def engine_options(**options: object) -> Dict[str, str]:
    """Options by the names that the engine knows them by, as texts."""
    return {name: ("on" if value else "off") if isinstance(value, bool) else str(value) for name, value in options.items()}


class _Loads:
    """A hook of modules: whether one was loaded. On its own, so that they neither keep their DivideShuffle nor are hard to pickle."""

    def __init__(self) -> None:
        self.seen = False

    def __call__(self, module: nn.Module, incompatible_keys: Any) -> None:
        self.seen = True


def _weakly(bound: Callable[[], Result], otherwise: Result) -> Callable[[], Result]:
    """For the engine, which its owner could otherwise never leave: Python's collector does not see references from C++."""
    reference = weakref.WeakMethod(bound)

    def call() -> Result:
        method = reference()
        return method() if method is not None else otherwise

    return call


def _floating(given: Averageable) -> NamedTensors:
    if torch.is_tensor(given):
        named = [("tensor", given)]
    elif isinstance(given, nn.Module):
        named = [*given.named_parameters(), *given.named_buffers()]
    else:
        raise InputError(f"consolidate() was given a {type(given).__name__}: expected models and tensors")
    return [(name, tensor.detach()) for name, tensor in named if tensor.is_floating_point()]


def _with_own_storage(parameter: torch.Tensor) -> torch.Tensor:
    """The engine makes parameters views into one large tensor. Saving one of them would save all of it, so each gets a storage
    of its own for the same memory. Returns it."""
    if parameter.numel() > 0:
        parameter.data = dlpack.from_dlpack(dlpack.to_dlpack(parameter.detach()))
    return parameter.detach()


def _short_bytes(size: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} B"


def _has_unscaled(scaler: Any, optimizer: Any) -> bool:
    """Whether the GradScaler has looked at this optimizer's gradients since its last update()."""
    state = getattr(scaler, "_per_optimizer_states", {}).get(id(optimizer))
    return bool(state and state.get("found_inf_per_device"))


def _kinds(tensors: NamedTensors) -> List[str]:
    return [f"'{name}' {tensor.dtype} {list(tensor.shape)}" for name, tensor in tensors]
