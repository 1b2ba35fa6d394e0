"""What a notebook's cells define and read, and in which order they were run; known without running any."""

from __future__ import annotations

from typing import ClassVar, Literal

from diagnostics.facts.frozen import frozen

ValueKind = Literal["import", "function", "class", "loop variable", "literal", "constant", "other"]
"""What a name is bound to, as far as its source tells.

``literal``: a number, text, list or the like, which cannot be called. ``constant``: what does not change though it
is made by a call, such as a device or a path.
"""


@frozen
class CellPlace:
    """A line of a code cell.

    Attributes:
        cell: the number of the code cell, from 1.
        count: the number that it had when it was run last, as in ``In[7]``; None if it was not run.
        line: in the cell, from 1.
    """

    cell: int
    count: int | None
    line: int

    def __str__(self) -> str:
        """Render as ``cell 3 (In[7])``."""
        return f"cell {self.cell}" if self.count is None else f"cell {self.cell} (In[{self.count}])"


@frozen
class MissingName:
    """A name that is read, when the notebook is run from the top, before anything has defined it.

    Attributes:
        name: that is read.
        read: where; of a function that a cell calls, the line within the function.
        called: where the function is called that reads it; None if the cell itself reads it.
        function: the function that reads it; empty if the cell itself does.
        defined: the first place further below that defines it; None if no cell does.
        deleted: the ``del`` above that removed it.
        ran: whether the notebook holds that cell as run, without an error.
    """

    name: str
    read: CellPlace
    called: CellPlace | None = None
    function: str = ""
    defined: CellPlace | None = None
    deleted: CellPlace | None = None
    ran: bool = False


@frozen
class CalledValue:
    """A name that is called as a function and holds, when the notebook is run from the top, a plain value.

    Attributes:
        name: that is called.
        called: where.
        bound: where it got the value.
        value: what that is: ``a number``, ``a list``.
        was: what the name was before: ``a function``, ``a built-in function``; empty if nothing is known.
        function: the function that calls it; empty if the cell itself does.
    """

    name: str
    called: CellPlace
    bound: CellPlace
    value: str
    was: str = ""
    function: str = ""


@frozen
class GlobalRead:
    """A function that reads a variable of the notebook.

    Attributes:
        function: its name.
        defined: where.
        name: of the variable.
        bindings: where the variable is set, from the top.
        kinds: what it is set to, one for each of `bindings`.
        calls: where cells call the function.
        differs: whether it is not set by the same place at every call and at the definition.
        changes_kind: whether, besides, it is a value here and a function, class or loop variable there.
        leftover: whether it is set by loops alone, and the function is called outside of them.
    """

    function: str
    defined: CellPlace
    name: str
    bindings: tuple[CellPlace, ...]
    kinds: tuple[ValueKind, ...]
    calls: tuple[CellPlace, ...] = ()
    differs: bool = False
    changes_kind: bool = False
    leftover: bool = False


@frozen
class Reordered:
    """A name that a cell read from another place, when it was run, than it will from the top.

    Attributes:
        name: that was read.
        read: where.
        then: the cell that had set it last, by the stored numbers; None if all that set it were run again later.
        from_top: the cell that will have set it.
    """

    name: str
    read: CellPlace
    then: CellPlace | None
    from_top: CellPlace


@frozen
class NotebookFacts:
    """A notebook, read and not run.

    Attributes:
        file: its name.
        cells: the number of its code cells.
        run: how many of them have been run, by their numbers.
        unread: by the number of the code cell, why it could not be read.
        missing: names read before they are defined.
        called: values called as functions.
        reads: variables that functions read.
        reordered: names that were read in another order, the first of each cell and name.
        last_count: the highest number of a run; 0 if none was run.
    """

    described: ClassVar[str] = "a notebook file"

    file: str
    cells: int
    run: int = 0
    unread: tuple[tuple[int, str], ...] = ()
    missing: tuple[MissingName, ...] = ()
    called: tuple[CalledValue, ...] = ()
    reads: tuple[GlobalRead, ...] = ()
    reordered: tuple[Reordered, ...] = ()
    last_count: int = 0
