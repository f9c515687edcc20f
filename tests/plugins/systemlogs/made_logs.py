"""Made lines of logs in the shapes of annotated public sets, with the template of each line.

Templates are as systems print them (BGL, HPC, Thunderbird and Spirit, Linux of the collection
loghub, and a node of today); their values and their frequencies are drawn. Templates that differ in
one word (opposites, causes) are there, and values that are words.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from datetime import UTC, datetime

SETS = {
    "BGL": """\
generating core.{n}
iar {x} dear {x}
{n} floating point alignment exceptions
{n} double-hummer alignment exceptions
CE sym {n}, at 0x{x}, mask 0x{x}
data TLB error interrupt
instruction TLB error interrupt
instruction cache parity error corrected
data cache parity error corrected
data storage interrupt
ciod: generated {n} core files for program {path}
ciod: Error loading {path}: invalid or missing program image, No such file or directory
ciod: Error loading {path}: invalid or missing program image, Permission denied
ciod: Error loading {path}: invalid or missing program image, Exec format error
ciod: LOGIN chdir({path}) failed: No such file or directory
ciod: LOGIN chdir({path}) failed: Input/output error
ciod: failed to read message prefix on control stream (CioStream socket to {ip}:{n}
{n} ddr errors(s) detected and corrected on rank {n}, symbol {n}, bit {n}
total of {n} ddr error(s) detected and corrected
program interrupt: fp cr field .............{n}
program interrupt: privileged instruction...{n}
machine check: i-fetch......................{n}
rts: kernel terminated for reason {n}
rts panic! - stopping execution
Node card VPD check: {loc} node in processor card slot {loc} do not match. VPD ecid {x}, found {x}
MidplaneSwitchController performing bit sparing on {loc} bit {n}""",
    "HPC": """\
Linkerror event interval expired
ambient={n}
boot (command {n})
wait (command {n})
halt (command {n})
normal
warning
running
not responding
link errors remain current
Fan speeds ( {n} {n} {n} {n} {n} {n} )
PSU status ( on on )
PSU status ( off on )
ClusterFileSystem: ServerFileSystem domain storage{n} is no longer served by node node-{n}
ClusterFileSystem: There is no server for ServerFileSystem domain storage{n}
Component State Change: Component \\042alt{n}\\042 is in the unavailable state (HWID={n})
Targeting domains:node-D{n} and nodes:node-[{n}-{n}] child of command {n}
ServerFileSystem: An ServerFileSystem domain panic has occurred on storage{n}
risBoot (command {n}) Error: Timed out on node node-{n}
Temperature ({n}C) exceeds warning threshold
Power/Control problem""",
    "Thunderbird": """\
data_thread() got not answer from any [Thunderbird_{loc}] datasource
synchronized to {ip}, stratum {n}
session closed for user {user}
session opened for user {user} by (uid={n})
session opened for user {user} by {user}(uid={n})
({user}) CMD (run-parts /etc/cron.hourly)
DHCPDISCOVER from {mac} via eth{n}: network A_net: no free leases
DHCPREQUEST for {ip} ({ip}) from {mac} via eth{n}: unknown lease {ip}.
PCI: Using ACPI for IRQ routing
PCI interrupt {pci} -> GSI {n} (level, low) -> IRQ {n}
ACPI: PCI interrupt {pci}[A] -> GSI {n} (level, low) -> IRQ {n}
[ib_sm_sweep.c:{n}]: No topology change
[ib_sm_sweep.c:{n}]: No configuration change required
Accepted publickey for {user} from ::ffff:{ip} port {n} ssh2
Connection closed by {ip}
Connection reset by {ip}
Warning: we failed to resolve data source name {host}
Kernel command line: ro root=LABEL=/ console=ttyS{n},{n}
kjournald starting. Commit interval {n} seconds
EXT3-fs: mounted filesystem with ordered data mode.
tg{n}: eth{n}: Link is up at {n} Mbps, full duplex.
tg{n}: eth{n}: Link is down.
{word} startup succeeded
{word} shutdown succeeded
removing service {word} now""",
    "Linux": """\
authentication failure; logname= uid={n} euid={n} tty=NODEVssh ruser= rhost={host} user={user}
check pass; user unknown
connection from {ip} ({maybe}) at {date}
session opened for user {user} by (uid={n})
session closed for user {user}
ALERT exited abnormally with [{n}]
Kerberos authentication failed
Authentication failed from {ip} ({ip}): Software caused connection abort
Authentication failed from {ip} ({ip}): Permission denied in replay cache code
getpeername (ftpd): Transport endpoint is not connected
warning: can't get client address: Connection reset by peer
Out of Memory: Killed process {n} ({word}).
creating device node '/udev/vcs{n}'
removing device node '/udev/vcs{n}'
BIOS-e{n}: {x} - {x} (reserved)
BIOS-e{n}: {x} - {x} (usable)
CPU {n} irqstacks, hard={x} soft={x}
usbcore: registered new driver {word}
{word}: module loaded and found on bus {n}""",
    "node": """\
EDAC MC{n}: {n} CE memory read error on CPU_SrcID#{n}_MC#{n}_Chan#{n}_DIMM#{n} (page:0x{x})
EDAC MC{n}: {n} UE memory read error on CPU_SrcID#{n}_MC#{n}_Chan#{n}_DIMM#{n} (page:0x{x})
NVRM: Xid (PCI:{pci}): {n}, pid={n}, name={word}, Ch {x}
mlx{n}_core {pci} ib{n}: Link up
mlx{n}_core {pci} ib{n}: Link down
LustreError: {n}:{n}:(ldlm_lib.c:{n}:target_send_reply()) @@@ processing error (-{n}) req@{x}
Lustre: {host}-OST{x}-osc: Connection restored to {ip}@o{n}ib (at {ip}@o{n}ib)
Lustre: {host}-OST{x}-osc: Connection lost to {ip}@o{n}ib; in progress operations will wait
INFO: task {word}:{n} blocked for more than {n} seconds.
watchdog: BUG: soft lockup - CPU#{n} stuck for {n}s! [{word}:{n}]
{word}[{n}]: segfault at {x} ip {x} sp {x} error {n} in libc.so.{n}[{x}+{x}]
slurmd: launch task StepId={n}.{n} request from UID:{n} GID:{n} HOST:{ip} PORT:{n}
slurmd: task/affinity: task_p_slurmd_batch_request: task_p_slurmd_batch_request: {n}
slurmd: error: Waiting for JobId={n} REQUEST_KILL_JOB to complete
systemd: Started Session {n} of user {user}.
systemd: Starting {word} service now
systemd: Stopping {word} service now
CPU{n}: Core temperature above threshold, cpu clock throttled (total events = {n})
CPU{n}: Core temperature/speed normal again
pcieport {pci}: AER: Corrected error received: {pci}
pcieport {pci}: AER: Uncorrected (Fatal) error received: {pci}""",
}
_WORDS = re.findall(
    r"\w+",
    "cupsd syslogd klogd irqbalance portmap xinetd sendmail crond gmond netfs autofs acpid rpciod "
    "hiddev usbhid python lammps gaussian vasp namd",
)
_USERS = re.findall(r"\w+", "root news cyrus test ann bob carol dave eve mallory")


def _hex(draw: random.Random) -> str:
    return f"{draw.randrange(1 << 32):08x}"


def _host(draw: random.Random) -> str:
    return f"{draw.choice(_WORDS)}.{draw.choice(_WORDS)}.{draw.choice(['com', 'de'])}"


def _path(draw: random.Random) -> str:
    names = [draw.choice(_WORDS) for _ in range(draw.randint(2, 5))]
    return "/" + "/".join(names) + draw.choice(["", ".out", f"_{draw.randrange(99)}"])


_VALUES: dict[str, Callable[[random.Random], str]] = {
    "n": lambda draw: str(draw.randrange(10 ** draw.randint(1, 6))),
    "x": _hex,
    "ip": lambda draw: ".".join(str(draw.randrange(256)) for _ in range(4)),
    "path": _path,
    "host": _host,
    "maybe": lambda draw: draw.choice(["", _host(draw)]),
    "word": lambda draw: draw.choice(_WORDS),
    "user": lambda draw: draw.choice(_USERS),
    "loc": lambda draw: f"R{draw.randrange(64):02d}-M{draw.randrange(2)}-N{draw.randrange(16)}",
    "mac": lambda draw: ":".join(f"{draw.randrange(256):02x}" for _ in range(6)),
    "pci": lambda draw: f"0000:{draw.randrange(256):02x}:00.{draw.randrange(8)}",
    "date": lambda draw: f"{datetime.fromtimestamp(draw.randrange(1 << 30), UTC):%c}",
}
_VALUE = re.compile(r"\{(\w+)\}")


def made(name: str, lines: int, seed: int) -> list[tuple[str, str]]:
    """Return lines of a set, each with its template. A few templates have most lines."""
    draw = random.Random(seed)
    templates = SETS[name].splitlines()
    draw.shuffle(templates)
    weights = [1 / (1 + place) for place in range(len(templates))]
    return [
        (template, _VALUE.sub(lambda found: _VALUES[found[1]](draw), template))
        for template in draw.choices(templates, weights, k=lines)
    ]
