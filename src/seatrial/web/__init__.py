"""Pages over a store and the trials behind it: what runs now, what failed, what it comes to.

    site = Site(Path("trials"), Path("trials/store.sqlite"))
    app = create_app(state, Door())               # an ASGI application; `seatrial serve` runs it

A page is one function from a question to data (``pages/``), a template, and a line in
``routes.py``; its data is also to be had as JSON beside it. Nothing here writes but the store's
own refresh from the journals.
"""
