"""The page of a study that a plug-in brings."""

from __future__ import annotations

from seatrial.hooks import Study, WebPage, load, provided
from seatrial.results.store import queries
from seatrial.show.page import Page
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState, news_of_plugins
from seatrial.show.web.study_view import Field, StudyView


def page_of(study: Study) -> WebPage:
    """Return the page of a study."""
    data = f"{__name__}:data"
    return WebPage(
        f"/{study.name}", study.name, data, "study.html", study.title, rows="lines", form=True
    )


def data(state: ServerState, query: PageQuery) -> StudyView:
    """Ask the study whose page it is; it is judged beside the server's requests."""
    name = query.address.rpartition("/")[2]
    (study,) = (one for one in provided("seatrial_studies") if one.name == name)
    fields = [
        Field(
            option.name.replace("_", " "),
            option.name,
            option.default,
            choices=option.choices,
            box=option.flag,
        )
        for option in study.options
    ]
    options = {option.name: query.text(option.name) or option.default for option in study.options}
    store = state.store()
    version = (
        *((trial.row, trial.last, trial.passed) for trial in queries.trials(store)),
        *(tuple(map(tuple, store.rows(sql))) for sql in news_of_plugins()),
    )

    def judged() -> Page:
        page: Page = load(study.run)(state.store(), **options)
        return page

    answer = state.studies.answer((study.name, *options.values()), version, judged)
    return StudyView(title=study.title, fields=fields).answered(answer)
