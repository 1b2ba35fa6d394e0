"""`show_tokens`: shows which tokens of a batch are trained, ignored or padding, next to their text."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.errors import InvalidInput, typed_message, what

if TYPE_CHECKING:
    from diagnostics.report.tokens import TokenStrip

TAKES = "It takes a Hugging Face Trainer, a DataLoader or another series of batches, or one batch with input_ids."


def show_tokens(source: Any, *, tokenizer: Any = None, examples: int = 2) -> TokenStrip:
    """Show the tokens of a batch as the model gets them: their text, and how the loss treats each of them.

    Call it once before a long run. It shows whether the prompt is ignored and the answer trained, whether the end
    token contributes to the loss, how many start tokens a text has, where the padding is, and where each text in a
    packed row ends.

        print(diagnostics.show_tokens(trainer))
        print(diagnostics.show_tokens(loader, tokenizer=tokenizer, examples=4))
        print(diagnostics.show_tokens(batch, tokenizer=tokenizer))

    A causal language model shifts the labels itself: the label at a position is predicted from the tokens before
    it. So a token is marked as trained if its own label contributes to the loss, and the first token of a row
    never is.

    Nothing is changed: rows are read in the order of the dataset, without the sampler, through the Trainer's or
    loader's own collator, and all random states are restored. No model is called.

    Args:
        source: a Trainer from transformers or TRL; a `DataLoader` or another iterable of batches; or one batch, a
            mapping with `input_ids` and optionally `attention_mask`, `labels` and `position_ids`. Without an
            `attention_mask`, pad tokens at the ends of a row are treated as padding.
        tokenizer: decodes the tokens. By default, that of the Trainer or of the collator; without one, ids are
            shown.
        examples: the number of rows to show. More may be read for the counts.

    Returns:
        A `TokenStrip`: text when printed, coloured by `rich`, HTML in a notebook; `trained`, `ignored`, `padding`,
        `ends`, `starts`, `facts`.

    Raises:
        InvalidInput: there are no tokens to show, or reading them would take rows away from training.
    """
    from diagnostics.collectors.shared.tokens import token_facts
    from diagnostics.report.tokens import TokenStrip

    if isinstance(examples, bool) or not isinstance(examples, int) or examples < 1:
        raise InvalidInput(f"show_tokens(examples={examples!r}): expected a whole number of at least 1.")
    if tokenizer is not None and not callable(getattr(tokenizer, "decode", None)):
        raise InvalidInput(
            f"show_tokens() was given {what(tokenizer)} as tokenizer, which has no decode(). Pass the tokenizer "
            "that made the batch."
        )
    with own_run():
        batch, found, causal = _batch(source, examples)
    if not isinstance(batch, Mapping):
        raise InvalidInput(
            f"show_tokens() was given {what(source)} whose batches are not mappings but of the type "
            f"{type(batch).__name__}. Pass one batch as a mapping: "
            "show_tokens({'input_ids': ..., 'labels': ...})."
        )
    facts = token_facts(batch, tokenizer if tokenizer is not None else found, causal)
    shown = min(examples, sum(not row.decoder for row in facts.rows))
    name = "a batch" if batch is source else f"the first batch of {what(source)}"
    return TokenStrip(facts, f"tokens of {name}", shown)


@contextmanager
def batch_read(function: str, source: Any) -> Iterator[None]:
    """Turn errors in reading a batch into the message of a function.

    Args:
        function: its name.
        source: its argument.

    Raises:
        InvalidInput: no batch could be read, or the user's code raised an exception.
    """
    from diagnostics.collectors.shared.pipeline import CannotJudge, StageFailed, UsersCodeRaised

    try:
        yield
    except (StageFailed, CannotJudge) as reason:
        said = str(reason).removesuffix(".")
        raise InvalidInput(
            f"{function}() could not read {what(source)}: {said}. You can pass one batch."
        ) from None
    except UsersCodeRaised as raised:
        cause = raised.__cause__ or raised
        raise InvalidInput(
            f"{function}() could not make a batch: the dataset or the collator raised {typed_message(cause)}"
        ) from cause


def _batch(source: Any, examples: int) -> tuple[Any, Any, bool | None]:
    """Return a batch, a tokenizer, and whether the model shifts the labels; None where that is not known."""
    if isinstance(source, Mapping):
        return source, None, None
    if source is None or isinstance(source, str | bytes | type):
        raise InvalidInput(f"show_tokens() was given {what(source)}. {TAKES}")
    if "torch" not in sys.modules:
        if isinstance(source, list | tuple) and source:
            return source[0], None, None
        raise InvalidInput(f"show_tokens() was given {what(source)}. {TAKES}")
    with batch_read("show_tokens", source):
        return _read(source, examples)


def _read(source: Any, examples: int) -> tuple[Any, Any, bool | None]:
    trainers = sys.modules.get("transformers.trainer")
    if trainers is not None and isinstance(source, getattr(trainers, "Trainer", ())):
        from diagnostics.collectors.transformers.first_rows import trainer_batch

        return trainer_batch(source, examples)
    import torch

    from diagnostics.collectors.pytorch.data import first_batch, not_batches
    from diagnostics.collectors.shared.tokens import tokenizer_of

    if isinstance(source, torch.nn.Module):
        raise InvalidInput(f"show_tokens() was given the model {type(source).__name__}. {TAKES}")
    if (why := not_batches(source)) is not None:
        raise InvalidInput(f"show_tokens() was given {what(source)}{why}")
    size = getattr(source, "batch_size", None) or 1
    batch = first_batch(source, max(examples, min(size, 32), 1))
    return batch, tokenizer_of(getattr(source, "collate_fn", None)), None
