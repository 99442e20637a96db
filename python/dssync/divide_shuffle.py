"""DivideShuffle: keeps the replicas of all ranks together around an existing training loop."""

from __future__ import annotations

import logging
import weakref
from datetime import timedelta
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Type, TypeVar, Union

import torch
from torch import nn
from torch.optim import Optimizer

from . import _dssync
from ._dssync import Error, InputError
from ._adam import AdamSteps, is_adam, normalizes
from ._joining import discovered, ends_with_program, join, telling_others
from ._layers import can_step_in_parts, install
from .planning import AnyTopology, Plan, as_topology

NamedTensors = List[Tuple[str, torch.Tensor]]
StateOfOptimizer = List[Tuple[str, NamedTensors]]

Result = TypeVar("Result")

LOGGER = logging.getLogger("dssync")
DEFAULT_TIMEOUT = timedelta(minutes=30)  # as torch.distributed's


class DivideShuffle:
    """Averages the parameters of all ranks in changing groups, after every step of the optimizer.

        sync = dssync.DivideShuffle(model, optimizer, topology="network.yaml")
        for inputs, labels in loader:
            loss_function(model(inputs), labels).backward()
            sync.step()  # instead of optimizer.step()
            optimizer.zero_grad()
        sync.consolidate()  # one model on all ranks: before evaluating and saving

    Every rank makes the same calls in the same order. Needs an initialised process group; all ranks start with rank 0's
    values. Not thread-safe. After an exception from here the object can only be dropped.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        *,
        topology: AnyTopology,
        disagreement: float = 0.5,
        overlap: Union[str, bool] = "auto",
        adapt: bool = False,
        plan: Optional[Plan] = None,
        group_limit: int = 0,
        published: bool = False,
        exact_inside: str = "none",
        state: str = "auto",
        state_period: int = 8,
        noise_correction: bool = True,
        warmup_steps: int = 0,
        timeout: timedelta = DEFAULT_TIMEOUT,
    ) -> None:
        """
        topology: the network, or the file that describes it, with one worker for each rank; "auto": the ranks measure it
        disagreement: how far the replicas may stay apart, overlap included; smaller is closer and slower
        overlap: when averages run. "layered": from the backward pass to the next forward pass, which waits for each module's
            parameters alone; the result is that of "none": after each step. "combine": during the whole next iteration, which
            lets replicas differ more. "auto": the best of these. True is "auto", False is "none"
        adapt: watch the links while training, and plan again where they become slower or faster
        plan: what to follow, instead of the fastest plan for the topology, the model and the disagreement
        group_limit, published, exact_inside: as for dssync.plan()
        state: of the optimizer (momentum): "inferred" from how averages move the parameters (Adam, AdamW), "rotating", a part at
            a time with the parameters, "averaged", all of it, or "local". "auto": inferred for Adam and AdamW, otherwise rotating
        state_period: of "rotating": in how many parts
        noise_correction: Adam's steps get as long as everyone's mean gradient would make them; for Adam and AdamW
        warmup_steps: global averages before the schedule starts
        timeout: for joining, connecting, and each stage of an average
        """
        self.optimizer = optimizer
        self._model = model
        self._parameters: NamedTensors = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self._buffers: NamedTensors = list(model.named_buffers())
        self._state: Optional[Any] = None  # optimizer.state, once the engine averages what is in it
        self._bound: List[Tuple[torch.Tensor, str, torch.Tensor]] = []  # parameter, kind, tensor that the engine averages
        self._world, device = join([*model.named_parameters(), *self._buffers], timeout)
        with telling_others(self._world):
            _check_model(model)
            _check_optimizer(model, optimizer)
            self._adam = AdamSteps(optimizer, self._parameters) if is_adam(optimizer) else None
            self.topology = discovered(self._world, device) if topology == "auto" else as_topology(topology)
            self._averaging = _dssync.Averaging(
                self._world,
                self.topology._native,
                self._parameters,
                self._buffers,
                [(name, p) for name, p in model.named_parameters() if not p.requires_grad],
                _weakly(self._collect_state, []),
                _weakly(self._step_in_backward, None) if can_step_in_parts(optimizer) else None,
                adam=self._adam.table if self._adam else None,
                normalizes=normalizes(optimizer),
                plan=plan._native if plan else None,
                options=engine_options(
                    disagreement_limit=disagreement,
                    group_limit=group_limit,
                    published=published,
                    exact_inside=exact_inside,
                    adapt=adapt,
                    overlap=overlap,
                    state=state,
                    state_period=state_period,
                    noise_correction=noise_correction,
                    sync_warmup_iterations=warmup_steps,
                ),
            )
            ends_with_program(self._averaging)
        if noise_correction and self.noise_correction == "unknown optimizer":
            LOGGER.warning(
                "%s: dssync does not know how this optimizer divides by the size of gradients. If it does, its steps are too "
                "short: compare with a learning rate up to the root of metrics['noise_ratio'] times larger",
                type(optimizer).__name__,
            )
        self._has_regions = len(self.plan.replicas) > 0
        self._has_gradients = False  # the engine was told that they are complete
        self._addresses = [p.data_ptr() for p in _trained(optimizer)]
        self._settings: Optional[List[Any]] = None  # with which steps were made in the backward pass
        self._has_warned = False
        self._loads = _Loads()
        for module in model.modules():
            if not isinstance(module, torch.jit.ScriptModule):  # they take no hooks
                module.register_load_state_dict_post_hook(self._loads)
        if self.overlap == "layered":
            install(self, model, self._await, self.settle)

    def step(self, closure: Optional[Callable[[], Any]] = None, *, scaler: Optional[Any] = None) -> Any:
        """The optimizer's step, and the averages around it. With a GradScaler: scaler.step(optimizer), which may skip it.

        Gradients that were accumulated over several backward passes need one call. Returns what the optimizer returns.
        """
        if closure is not None and scaler is not None:
            raise InputError("a GradScaler makes its step without a closure: call the closure first, then step(scaler=scaler)")
        if self._has_regions and closure is not None:
            raise InputError("gradients are averaged inside exact regions before the step: call the closure first, then step()")
        if self._has_regions and scaler is not None and not self._has_gradients and _has_unscaled(scaler, self.optimizer):
            raise InputError(
                "gradients were unscaled before they are averaged inside exact regions: call finish_backward(), then unscale_()"
            )
        if self._is_moved():
            raise self._change()
        self._take_over_loads()
        result = None
        self._has_gradients = False
        if not self._averaging.before_step(is_final=scaler is None and closure is None):
            self._check_settings()
        elif scaler is not None:
            result = scaler.step(self.optimizer)
        else:
            result = self.optimizer.step(closure) if closure is not None else self.optimizer.step()
        if self._adam:
            self._adam.refresh()
        self._averaging.after_step()
        return result

    def finish_backward(self) -> None:
        """With exact regions: averages the gradients inside this rank's region now, after the last backward(). step() and
        clip_grad_norm_() do that by themselves; call it before anything else reads gradients, such as scaler.unscale_()."""
        if self._is_moved():
            raise self._change()
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

    def consolidate(self, *others: nn.Module) -> float:
        """One exact average of everyone: the same parameters and buffers on all ranks. Before evaluating and saving.

        others: models that are made of this one on every rank, such as torch.optim.swa_utils.AveragedModel; they are averaged
        as well. What is not a floating point number in them stays.

        Returns how far this rank was from the average: |x_i - mean|^2.
        """
        self._check_model()
        self._take_over_loads()
        replaced = self._replaced_buffers()
        with torch.no_grad():
            for ours, present in replaced:
                ours.copy_(present)
            distance = self._averaging.consolidate()
            for ours, present in replaced:
                present.copy_(ours)
            for other in others:
                self._averaging.average_everyone(_floating(other))
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
        self._bound = []
        for name, parameter in self._parameters:
            for kind, value in self.optimizer.state.get(parameter, {}).items():
                if kind != "step" and torch.is_tensor(value) and value.shape == parameter.shape:
                    kinds.setdefault(kind, []).append((name, value))
                    self._bound.append((parameter, kind, value))
        if kinds:
            self._state = self.optimizer.state
        return list(kinds.items())

    def _await(self, parameters: Sequence[torch.Tensor]) -> None:
        """Before the forward pass of the module that owns them."""
        self._take_over_loads()
        self._averaging.await_parameters(parameters)

    def _step_in_backward(self) -> None:
        """The engine calls it while the backward pass runs, with the gradients of some parameters; all others have none."""
        if self._settings is None:
            self._settings = _settings_of(self.optimizer)
        self.optimizer.step()
        if self._adam:
            self._adam.refresh()

    def _check_settings(self) -> None:
        """Steps were made in the backward pass: what is changed before step() comes too late for them."""
        settings, self._settings = self._settings, None
        if settings is not None and settings != _settings_of(self.optimizer) and not self._has_warned:
            self._has_warned = True
            LOGGER.warning(
                "the learning rate (or another setting of the optimizer) was changed between backward() and step(): it counts "
                "from the next step on, because this one was made in the backward pass; change it before backward()"
            )

    def _is_moved(self) -> bool:
        return [p.data_ptr() for p in _trained(self.optimizer)] != self._addresses

    def _check_model(self) -> None:
        now = [p for p in self._model.parameters() if p.requires_grad]
        if [id(p) for p in now] != [id(p) for _, p in self._parameters] or self._is_moved():
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
        if self._state is not None and self._state is not self.optimizer.state:
            self._bind_state_again()
            self._loads.seen = True
        if self._loads.seen:
            self._check_model()
            self._averaging.drop()
            self._loads.seen = False

    def _bind_state_again(self) -> None:
        """optimizer.load_state_dict() has made new tensors: their values go into those that the engine averages."""
        self._state = self.optimizer.state
        for parameter, kind, ours in self._bound:
            loaded = self._state[parameter].get(kind)
            if loaded is None:
                raise Error(f"the optimizer's state was replaced by one without '{kind}': make a new DivideShuffle")
            self._state[parameter][kind] = ours.copy_(loaded)

    def _change(self) -> Error:
        """What is no longer as it was when the engine took the parameters over."""
        known = {id(p): name for name, p in self._parameters}
        names = {id(p): name for name, p in self._model.named_parameters()}
        now = [p for p in [*self._model.parameters(), *_trained(self.optimizer)] if p.requires_grad]
        added = sorted({names.get(id(p), "one that the model does not have") for p in now if id(p) not in known})
        gone = sorted(name for key, name in known.items() if key not in {id(p) for p in now})
        what = [f"{text} {', '.join(list_)}" for text, list_ in (("was added:", added), ("is gone:", gone)) if list_]
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


def _floating(model: nn.Module) -> NamedTensors:
    named = [*model.named_parameters(), *model.named_buffers()]
    return [(name, tensor.detach()) for name, tensor in named if tensor.is_floating_point()]


def _has_unscaled(scaler: Any, optimizer: Optimizer) -> bool:
    """Whether the GradScaler has looked at this optimizer's gradients since its last update()."""
    state = getattr(scaler, "_per_optimizer_states", {}).get(id(optimizer))
    return bool(state and state.get("found_inf_per_device"))


def _settings_of(optimizer: Optimizer) -> List[Any]:
    """Numbers that a step depends on."""
    return [value for group in optimizer.param_groups for value in group.values() if isinstance(value, (int, float, tuple))]


def _kinds(tensors: NamedTensors) -> List[str]:
    return [f"'{name}' {tensor.dtype} {list(tensor.shape)}" for name, tensor in tensors]


def _trained(optimizer: Optimizer) -> List[torch.Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]


def _check_model(model: nn.Module) -> None:
    if isinstance(model, nn.parallel.DistributedDataParallel):
        raise InputError("the model is wrapped in DistributedDataParallel, which averages gradients: give the model itself")
    if not any(p.requires_grad for p in model.parameters()):
        raise InputError("the model has no parameter that is trained (requires_grad)")


def _check_optimizer(model: nn.Module, optimizer: Optimizer) -> None:
    held = {id(p) for p in _trained(optimizer)}
    missing = [name for name, p in model.named_parameters() if p.requires_grad and id(p) not in held]
    if missing:
        raise InputError(f"the optimizer does not hold {_some(missing)} of the model: make it from model.parameters(), or "
                         "freeze what is not to be trained (requires_grad_(False))")
    strangers = held - {id(p) for p in model.parameters()}
    if strangers:
        raise InputError(f"the optimizer holds {len(strangers)} parameters that the model does not have")


def _some(names: List[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more parameters"
