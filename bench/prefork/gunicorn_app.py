"""An application with a warmed heap, and the settings with which gunicorn serves it."""

import os

preload_app = True
workers = int(os.environ["WORKERS"])
bind = "127.0.0.1:8765"
loglevel = "error"
# A worker is replaced after its first request.
max_requests = 1

# Gunicorn reads this file once as settings, and imports it once as the application.
if __name__ == "gunicorn_app":
    from run import HUGE, PAGE, Heap

    heap = Heap(int(os.environ["MIB"]) << 20)
    folio = int(os.environ["FOLIO"])
    print(heap.folios(folio // PAGE), flush=True)
    if folio == HUGE:
        heap.split_entries()


def application(_, start_response):
    """Writes to each page of the heap, and says how many were copied."""
    body = str(heap.copied(2)).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


def on_exit(_):
    """The master writes when its workers are gone."""
    import gunicorn_app

    print(gunicorn_app.heap.copied(3), flush=True)
