"""Whether a machine must be named: this host may be a login node, which starts no tests itself."""

from seatrial.errors import UsageError
from seatrial.machine.detect_slurm import cluster_name
from seatrial.machine.load import LOCAL, machine_file


def require_chosen(name: str | None, key: str) -> None:
    """Raise UsageError where no machine is named, no file describes this host, and a Slurm answers
    here: this is a login node, where nobody wants to run tests unasked. ``key`` names a machine:
    ``-m``, or the plan's."""
    if name is None and machine_file(None) is None and (cluster := cluster_name()):
        raise UsageError(
            f"a Slurm answers here (cluster {cluster}), and no machine is named: name its file with"
            f" {key} (`seatrial machine {cluster} --detect --scheduler slurm` makes a first one),"
            f" or say {key} {LOCAL} to run on this host itself"
        )
