"""The page of the server: plans of purges, and what was done by them.

It names no owner, and no line of a whitelist: ``seatrial purge show`` does, on a terminal.
"""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.plugins.purge.pages import Asked, plans_page, show_page
from seatrial.plugins.purge.plan_file import open_plan, plans_folder
from seatrial.show.page import Page
from seatrial.show.web.page import BadQuery, PageQuery
from seatrial.show.web.server_state import ServerState
from seatrial.show.web.study_view import Field, StudyView

_BY = ("kind", "class", "age", "root")


def purge(state: ServerState, query: PageQuery) -> StudyView:
    """Return all plans, or one by kind, class, age or root."""
    folder = plans_folder(state.folder)
    name, by = query.text("plan"), query.choice("by", _BY, "kind")
    if not name:
        return StudyView(
            title="Purges", fields=(), state="judged", answer=plans_page(folder, linked=True)
        )
    if "/" in name or name.startswith("."):
        raise BadQuery(f"{name!r} is no name of a plan")
    fields = (Field("Plan", "plan"), Field("By", "by", choices=_BY))
    view = StudyView(title=f"Plan {name}", fields=fields, state="judged")
    try:
        with open_plan(folder / name) as plan:
            plan.require_unchanged()
            answer: Page = show_page(plan, Asked(by))  # type: ignore[arg-type] # one of _BY
    except UsageError as error:
        return replace(view, state="refused", reason=str(error))
    return replace(view, answer=answer)
