"""The server's application: pages, their JSON, the stream of news, static files.

app = create_app(ServerState(trials, store), token="")
uvicorn.run(app)                               # what `seatrial serve` does
"""

import contextlib
import html
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from urllib.parse import parse_qsl, quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from seatrial.errors import SeatrialError, StoreError, UsageError
from seatrial.hooks import WebPage
from seatrial.log import logger
from seatrial.web.access import LOCAL_NAMES, AccessMiddleware
from seatrial.web.journal_watch import JournalWatch, TooMany
from seatrial.web.page import data_of
from seatrial.web.query import BadQuery, PageQuery
from seatrial.web.render import STATIC, Renderer, as_csv, as_json
from seatrial.web.response_cache import Answer, Overloaded, ResponseCache
from seatrial.web.routes import pages
from seatrial.web.state.server_state import ServerState

_log = logger(__name__)

Endpoint = Callable[[Request], Awaitable[Response]]


def create_app(
    state: ServerState, token: str = "", hosts: frozenset[str] | None = LOCAL_NAMES
) -> Starlette:
    """Return the application. With a ``token`` people must sign in; ``hosts`` are the names by
    which the server may be called, None for any."""
    server = _Server(state)
    routes: list[BaseRoute] = [
        Mount("/static", _Static(directory=STATIC), name="static"),
        Route("/news", server.news),
    ]
    for page in pages():
        json_path = "/now.json" if page.path == "/" else f"{page.path}.json"
        routes.append(Route(json_path, server.endpoint(page, "json")))
        if page.rows:
            routes.append(Route(f"{page.path}.csv", server.endpoint(page, "csv")))
        if page.template:
            routes.append(Route(page.path, server.endpoint(page, "html")))
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(AccessMiddleware, token=token, hosts=hosts, form=server.renderer.sign_in),
            Middleware(GZipMiddleware, minimum_size=1000, compresslevel=4),
        ],
        exception_handlers={HTTPException: server.not_found},
        lifespan=server.lifespan,
    )
    app.state.watch = server.watch
    return app


class _Static(StaticFiles):
    """Static files, to be kept by browsers: their addresses change with their content."""

    def file_response(self, *args: object, **named: object) -> Response:
        response = super().file_response(*args, **named)  # type: ignore[arg-type]
        response.headers["cache-control"] = "public, max-age=31536000, immutable"
        return response


class _Server:
    """The parts that the routes share."""

    def __init__(self, state: ServerState) -> None:
        self.state = state
        self.renderer = Renderer()
        self.responses = ResponseCache()
        self.watch = JournalWatch(state)

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self.watch.start()
        try:
            yield
        finally:
            self.watch.stop()
            self.responses.close()

    def endpoint(self, page: WebPage, form: str) -> Endpoint:
        """Return the endpoint of a page in one of its forms: ``html``, ``json`` or ``csv``."""

        async def respond(request: Request) -> Response:
            text = request.url.query
            path = request.url.path
            address = path if form == "html" else path.removesuffix(f".{form}")

            def work() -> Answer:
                return self._answer(page, form, dict(request.path_params), text, address)

            key, start = f"{form} {path}?{text}", time.monotonic()
            try:
                answer = await self.responses.make(key, self.state.generation, work)
            except Overloaded as error:
                _log.warning("%s refused: %s", path, error)
                return self._failed(form, 503, str(error))
            milliseconds = 1000 * (time.monotonic() - start)
            _log.debug("%s: status %d after %.0f ms", path, answer.status, milliseconds)
            return _response(form, answer)

        return respond

    def _answer(
        self, page: WebPage, form: str, path: dict[str, str], text: str, address: str
    ) -> Answer:
        """Make the response; called in a worker thread."""
        self.watch.fresh()
        try:
            query = PageQuery(path, parse_qsl(text), quote(address, safe="/%:@+,"))
            try:
                data = data_of(page, self.state, query)
                query.check_names()
            except StoreError:  # one that is no store is of both kinds
                raise
            except UsageError as error:
                return self._refused(page, form, query, error)
            if form == "html":
                return Answer(200, self.renderer.html(page, self.state, query, data))
            return Answer(200, as_csv(data, page.rows) if form == "csv" else as_json(data))
        except BadQuery as error:
            return self._error(form, 400, str(error))
        except StoreError as error:
            self.state.forget()
            return self._error(form, 503, str(error))
        except (SeatrialError, OSError) as error:
            return self._error(form, 404, str(error))
        except Exception:
            _log.exception("%s cannot be made", address)
            return self._error(form, 500, "this is a defect of Seatrial; the server's log has more")

    def _refused(self, page: WebPage, form: str, query: PageQuery, error: UsageError) -> Answer:
        """Say why a query has no answer, on the page with its form so that it can be corrected."""
        status = 400 if isinstance(error, BadQuery) else 404
        if form == "html" and page.form and query.query:
            for name in dict.fromkeys((getattr(error, "name", ""), "")):
                with contextlib.suppress(UsageError):
                    data = data_of(page, self.state, query.without(name))
                    html = self.renderer.html(page, self.state, query, data, str(error))
                    return Answer(status, html)
        return self._error(form, status, str(error))

    def _error(self, form: str, status: int, text: str) -> Answer:
        if form != "html":
            return Answer(status, json.dumps({"error": text}).encode())
        return Answer(status, self.renderer.error(self.state, status, _TITLES[status], text))

    def _failed(self, form: str, status: int, text: str) -> Response:
        return _response(form, self._error(form, status, text))

    async def not_found(self, request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        form = "json" if request.url.path.endswith(".json") else "html"
        if status != 404:
            return PlainTextResponse(html.unescape(str(error)) + "\n", status)
        return self._failed(form, 404, f"{request.url.path[:200]}: there is no such page")

    async def news(self, request: Request) -> Response:
        """The stream: an event ``news`` with the site's generation, whenever it changes."""
        stream = self.watch.news()
        try:
            first = await anext(stream)
        except TooMany as error:
            return PlainTextResponse(f"{error}\n", 503, {"retry-after": "30"})

        async def events() -> AsyncIterator[bytes]:
            async with contextlib.aclosing(stream):
                yield b"retry: 2000\nevent: news\ndata: %d\n\n" % first
                async for number in stream:
                    yield b"event: news\ndata: %d\n\n" % number

        return StreamingResponse(events(), media_type="text/event-stream")


_TITLES = {
    400: "This cannot be read",
    404: "Not here",
    500: "A defect",
    503: "Not now",
}


def _response(form: str, answer: Answer) -> Response:
    kind = "text/html" if form == "html" else "application/json"
    if form == "csv" and answer.status == 200:
        kind = "text/csv"
    headers = {"retry-after": "2"} if answer.status == 503 else None
    return Response(answer.body, answer.status, headers, media_type=kind)
