"""The pages of usage: what others ran, as the server shows it."""

from pathlib import Path

from seatrial.plugins.usage.jobs import UserJob
from seatrial.show.web.state.server_state import ServerState

from .kept import keep


def test_open_pages_ask_again_after_an_import(tmp_path: Path) -> None:
    state = ServerState(tmp_path, tmp_path / "store.sqlite")
    try:
        generations = []
        for number in range(4):
            if number in (1, 2):
                keep(tmp_path, [UserJob(machine="hopper", job=str(number), submitted=1000)])
            state.refresh()
            generations.append(state.generation)
        assert not state.trouble
    finally:
        state.close()
    first, second, third, last = generations
    assert first < second < third == last
