"""MPICH, which ``make test`` installs into an environment of its own: in one with Open MPI, each
would replace the other's ``mpirun``.

    @pytest.mark.parametrize("name", ["Open MPI", pytest.param("MPICH", marks=NEEDS_MPICH)])
"""

from __future__ import annotations

from pathlib import Path

import pytest

MPIEXEC = str(Path(__file__).parents[1] / ".venv-mpich" / "bin" / "mpiexec.hydra")
NEEDS_MPICH = pytest.mark.needs(MPIEXEC)
