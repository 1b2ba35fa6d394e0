"""Records the first forward pass and the first loss of each training loop."""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Set
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.pytorch.batch import prediction_in
from diagnostics.collectors.pytorch.loss_graph import graph_nodes, loss_graph
from diagnostics.collectors.pytorch.watch.record.captured_pass import named_tensors, tensors, without_graph
from diagnostics.collectors.shared.script_line import place_of, script_frame, script_line
from diagnostics.collectors.source.differentiated import differentiated_at
from diagnostics.facts.where import Places, Where

from .batch_source import BatchSource
from .first_step_pipeline import NOTHING, FirstPass, Given
from .loss_calls import LossRecorder, RecordedLoss, node_number, unflattened
from .probes.leaves import InnerCalls, Reach, Vanished

MAX_OUTPUTS = 16  # tensors of a model's output that are recognised later
FACTORS = 4  # of a loss, one after the other, as the square of a temperature is written
MAX_TERMS = 4  # of a loss, that are examined beside the main one
MISSES = 8  # backward passes that reach no parameter of a module, after which it counts as not trained
MAX_CALLS = 4096  # of a module without a backward pass, after which it counts as inference only
MAX_BESIDE = 16  # calls of modules without weights, between the first call of a model and its backward pass
WAITING = 64  # backward passes without a step, after which a pass is dropped


@dataclass
class _Call:
    """The latest direct call of a module by the script since the last backward pass."""

    module: weakref.ref[nn.Module]
    wanted: bool
    given: Given = NOTHING
    heard: int = 0  # losses before the call
    heard_within: int = 0  # losses before its end
    fed: bool = False  # whether an input was computed from parameters
    outputs: tuple[weakref.ref[Tensor], ...] = ()
    prediction: Tensor | None = None
    inner: InnerCalls = field(default_factory=InnerCalls)
    vanished: Vanished = ()
    where: Where | None = None
    node: int | None = None  # see `_Beside`

    def returned(self, output: Any, heard: int) -> None:
        """Record what the module returned."""
        self.heard_within, self.vanished, self.node = heard, self.inner.gone(), _node_of_number(output)
        self.outputs = tuple(weakref.ref(tensor) for tensor in tensors(output)[:MAX_OUTPUTS])
        prediction = prediction_in(output)
        self.prediction = None if prediction is None else prediction.detach()

    def gave(self, tensor: Tensor | None) -> bool:
        """Whether the module returned this very tensor."""
        return tensor is not None and any(reference() is tensor for reference in self.outputs)


@dataclass
class _Beside:
    """A call of a module that has nothing to train, as most losses have not.

    Attributes:
        where: the line of the script that calls it.
        node: of the graph, that made the number () that it returned; None if it returned none.
    """

    where: Where | None
    node: int | None = None
    wanted: Final = False

    def returned(self, output: Any, _heard: int) -> None:
        """Record what the module returned."""
        self.node = _node_of_number(output)


class FirstStepRecorder:
    """Records the first forward pass of each module that is trained, and delivers it once.

    References are held from the first call of a module to its first backward pass; if its optimizer is not known
    by then, to the first step.
    """

    def __init__(
        self,
        deliver: Callable[[nn.Module, FirstPass], bool],
        guard: FaultGuard,
        suspended: Callable[[], bool],
    ) -> None:
        """Prepare; nothing is touched until a module is called.

        Args:
            deliver: called with a module and its pass; returns whether the loop is known yet.
            guard: runs the work at calls of losses.
            suspended: whether to observe nothing now.
        """
        self._deliver, self._suspended = deliver, suspended
        self.loaders = BatchSource()
        self._losses = LossRecorder(self._before_loss, guard)
        self._done: IdentityMap[nn.Module, None] = IdentityMap()
        self._frozen: IdentityMap[nn.Module, None] = IdentityMap()
        self._called: IdentityMap[nn.Module, int] = IdentityMap()
        self._misses: IdentityMap[nn.Module, int] = IdentityMap()
        self._calls: dict[int, _Call] = {}
        self._beside: list[_Beside] = []
        self._thread = 0
        self._waiting: dict[int, tuple[weakref.ref[nn.Module], FirstPass]] = {}
        self._waited = 0

    def wants(self, module: nn.Module) -> bool:
        """Whether to record a call of the module: it is new, or may come between a new one and the loss."""
        return bool(self._calls) or (module not in self._frozen and module not in self._done)

    def skip(self, module: nn.Module) -> None:
        """Record no pass of a module."""
        self._done[module] = None

    def called(
        self, module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> _Call | _Beside | None:
        """Record a call that is about to run."""
        if self._calls and self._thread != threading.get_ident():
            return None
        if module in self._frozen or not any(parameter.requires_grad for parameter in module.parameters()):
            self._frozen[module] = None
            if not self._calls or len(self._beside) == MAX_BESIDE:
                return None
            self._beside.append(beside := _Beside(script_line()))
            return beside
        self._called[module] = self._called.get(module, 0) + 1
        if self._called[module] > MAX_CALLS:
            self._done[module] = None
            self._calls.pop(id(module), None)
        call = _Call(weakref.ref(module), module not in self._done)
        if call.wanted:
            self._thread = threading.get_ident()
            given = {
                name: tensor
                for name, tensor in (*named_tensors(arguments), *named_tensors(options))
                if type(tensor) in (Tensor, nn.Parameter)
            }
            call.fed = any(tensor.grad_fn is not None for tensor in given.values())
            call.given = Given.of(given, without_graph((arguments, options)))
            call.where = script_line()
            self._losses.open(self._is_mine)
        call.heard = len(self._losses.heard)
        self._calls.pop(id(module), None)  # so that the latest comes last
        self._calls[id(module)] = call
        return call

    def returned(self, call: _Call | _Beside, output: Any) -> None:
        """Record the output of a call."""
        call.returned(output, len(self._losses.heard))

    def backward(self, loss: Tensor, value: Tensor) -> None:
        """Deliver the calls that led to a loss, before its gradients are computed.

        Args:
            loss: one number, with its graph.
            value: the same, detached, and before a scaler multiplied it.
        """
        self._age()
        if not self._calls or not self._is_mine():
            return
        calls, heard, other = list(self._calls.values()), self._losses.heard, self._losses.other
        returning: list[_Beside | _Call] = [*self._beside, *calls]
        self.end()
        if not any(call.wanted for call in calls):
            return
        nodes = graph_nodes(loss)
        leaves = [variable for node in nodes if (variable := getattr(node, "variable", None)) is not None]
        reached = {id(leaf): leaf for leaf in leaves}
        numbers = {node_number(node) for node in nodes} - {None}
        heard = [call for call in heard if _is_part(call, numbers)]
        other = None if other is None or not _is_part(other, numbers) else other
        trained = [call for call in calls if self._is_trained(call, reached)]
        for call in trained:
            module = call.module()
            if module is not None and call.wanted:
                self._done[module] = None
                seen = self._pass(call, heard, loss, value if call is trained[-1] else None)
                seen.reach = Reach(reached, _feeding(call, trained), _following(call, trained), call.vanished)
                seen.graph = loss_graph(nodes) if call is trained[-1] else None
                seen.terms = _terms(heard, other) if call is trained[-1] else ()
                losses = [one.where for one in (seen.call, *heard, other) if one is not None]
                losses += [one.where for one in returning if one.node in numbers]
                seen.places = self._places(call, losses)
                self._hand_over(module, seen)

    def begun(self, modules: Iterable[nn.Module]) -> FirstPass | None:
        """Return the pass of modules that turn out to be one loop at its first step."""
        there = [found[1] for module in modules if (found := self._waiting.pop(id(module), None)) is not None]
        if not there:
            return None
        last = next((seen for seen in there if seen.loss is not None), there[-1])
        first = there[0]
        return dataclasses.replace(last, called_with=first.called_with, reach=first.reach)

    def stepped(self) -> None:
        """Drop passes for which no loop was found."""
        self._waiting.clear()
        self.loaders.forget()

    def end(self) -> None:
        """Drop all records, and stop recording losses."""
        self._calls, self._beside = {}, []
        self._losses.close()

    def _is_mine(self) -> bool:
        return self._thread == threading.get_ident() and not self._suspended()

    def _before_loss(self, heard: RecordedLoss) -> None:
        """Deliver before a loss fails: after that, nothing on an accelerator can be read."""
        calls = list(self._calls.values())
        if not calls or not calls[-1].wanted or not heard.labels_outside():
            return
        module, call = calls[-1].module(), calls[-1]
        if module is not None and module not in self._done:
            self._done[module] = None
            self._hand_over(module, self._before_failure(call, heard), at_once=True)

    def _is_trained(self, call: _Call, reached: Collection[int]) -> bool:
        module = call.module()
        if module is None:
            return False
        if any(id(parameter) in reached for parameter in module.parameters()):
            return True
        self._misses[module] = self._misses.get(module, 0) + 1
        if self._misses[module] >= MISSES:
            self._done[module] = None
        return False

    def _pass(self, call: _Call, heard: list[RecordedLoss], loss: Tensor, value: Tensor | None) -> FirstPass:
        """Describe a call; with the loss, if it was the last one before it."""
        seen = FirstPass(call.given)
        if value is not None:
            chosen = _chosen(heard, loss)
            seen.call, seen.prediction = chosen, None if heard else call.prediction
            if chosen is not None and call.prediction is not None:
                chosen.unflattened = unflattened(chosen.prediction, call.prediction)
            seen.direct = chosen is not None and _is_same(chosen.prediction, call.prediction)
            seen.is_output = not heard or (chosen is not None and call.gave(chosen.source()))
            seen.loss = float(value if chosen is None or chosen.value is None else chosen.value)
            seen.exact = chosen is not None and _is_scaled(chosen, loss)
            within = chosen is not None and chosen in heard[call.heard : call.heard_within]
            seen.of_model = True if within or call.gave(loss) else None if chosen is None else False
            seen.knows_labels = chosen is not None and not within and _was_given(call, chosen)
        return self._with_source(seen)

    def _places(self, call: _Call, losses: list[Where | None]) -> Places:
        """Name the lines that led to a backward pass, from within it; `losses`: where they were computed."""
        frame = script_frame()
        if frame is None:
            return Places(self.loaders.where, call.where, *losses[:1])
        loss = losses[0] if losses else differentiated_at(frame)
        return Places(self.loaders.where, call.where, loss, place_of(frame))

    def _before_failure(self, call: _Call, heard: RecordedLoss) -> FirstPass:
        seen = FirstPass(call.given, call=heard, is_output=call.gave(heard.source()))
        seen.places = Places(loader=self.loaders.where, model=call.where, loss=heard.where)
        return self._with_source(seen)

    def _with_source(self, seen: FirstPass) -> FirstPass:
        there = [*seen.called_with.inputs.values(), *([seen.call.target] if seen.call is not None else [])]
        source = self.loaders.source(there)
        if source is not None:
            seen.loader, seen.batch = source
            seen.items = self.loaders.items.latest
        seen.latest_loader = self.loaders.latest()
        return seen

    def _hand_over(self, module: nn.Module, seen: FirstPass, at_once: bool = False) -> None:
        if not self._deliver(module, seen) and not at_once:
            self._waiting[id(module)] = weakref.ref(module), seen
            self._waited = 0

    def _age(self) -> None:
        self._waited += 1
        if self._waited > WAITING:
            self._waiting.clear()


def _node_of_number(output: Any) -> int | None:
    """Return the node that made the first number () in what a module returned; None if there is none."""
    number = next((tensor for tensor in tensors(output) if not tensor.ndim), None)
    return None if number is None else node_number(number.grad_fn)


def _chosen(heard: list[RecordedLoss], loss: Tensor) -> RecordedLoss | None:
    """Return the loss that the backward pass begins with, or the only one; of several, one that broadcasts.

    A divergence beside a loss of labels, as in distillation, does not hide it.
    """
    of_labels = [call for call in heard if call.name != "kl_div"]
    if len(of_labels or heard) == 1:
        return (of_labels or heard)[0]
    exact = [call for call in heard if call.result is not None and call.result() is loss]
    return next(iter(exact or [call for call in heard if call.broadcast]), None)


def _is_same(one: Tensor, other: Tensor | None) -> bool:
    """Whether two tensors are the same memory, as what a module returned and a loss read."""
    if other is None or {one.layout, other.layout} != {torch.strided} or one.device != other.device:
        return False
    return bool(one.data_ptr() == other.data_ptr() and one.numel() == other.numel())


def _terms(heard: list[RecordedLoss], other: RecordedLoss | None) -> tuple[RecordedLoss, ...]:
    """Return the KL divergences beside other terms of a loss, and a loss that is not a common one."""
    divergences = [call for call in heard if call.name == "kl_div"] if len(heard) > 1 else []
    return (*divergences[:MAX_TERMS], *(() if other is None else (other,)))


def _feeding(call: _Call, trained: list[_Call]) -> tuple[nn.Module, ...]:
    """Return the modules that were called before, if they may have given a module its inputs."""
    earlier = trained[: trained.index(call)] if call.fed else []
    return tuple(module for other in earlier if (module := other.module()) is not None)


def _following(call: _Call, trained: list[_Call]) -> tuple[nn.Module, ...]:
    """Return the modules that were called after a module, if they may have got its results."""
    later = [other for other in trained[trained.index(call) + 1 :] if other.fed]
    return tuple(module for other in later if (module := other.module()) is not None)


def _is_scaled(call: RecordedLoss, loss: Tensor) -> bool:
    """Whether the differentiated loss is the result of a call and nothing else, or that times constants."""
    if call.result is not None and call.result() is loss:
        return True
    node = loss.grad_fn
    for _ in range(FACTORS):
        if node is None or type(node).__name__ not in ("DivBackward0", "MulBackward0", "MeanBackward0"):
            return False
        given = [other for other, _ in node.next_functions if other is not None]
        node = given[0] if len(given) == 1 else None
        if call.node is not None and node_number(node) == call.node:
            return True
    return False


def _was_given(call: _Call, loss: RecordedLoss) -> bool:
    """Whether a module was called with the labels of a loss and with further inputs."""
    if not loss.indexed or len(call.given.inputs) < 2:
        return False
    target = loss.target.data_ptr(), loss.target.numel()
    dense = [given for given in call.given.inputs.values() if given.layout == torch.strided]
    return any((given.data_ptr(), given.numel()) == target for given in dense)


def _is_part(call: RecordedLoss, numbers: Set[int | None]) -> bool:
    """Whether a loss may be part of the differentiated one: one that is only printed is not."""
    return call.node is None or call.node in numbers
