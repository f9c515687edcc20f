"""Web pages over a store and its trials: what runs now, what failed, what it means.

    state = ServerState(Path("trials"), Path("trials/store.sqlite"))
    app = create_app(state)                      # an ASGI application; `seatrial serve` runs it

A page is one function from a query to data (``pages/``), a template, and a line in ``routes.py``.
Its data is also served as JSON. Only the refresh of the store from the journals writes anything.
"""
