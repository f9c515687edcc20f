"""What emulated clusters share: authentication, and accounting in a database of its own."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.slurm.daemons import (
    LOOPBACK,
    Daemon,
    await_,
    free_ports,
    hostname,
    listens,
    program,
    short_folder,
)


class Services:
    """What clusters share: authentication (munged), and accounting (mariadbd and slurmdbd)."""

    def __init__(self, folder: Path, *, accounting: bool) -> None:
        self.folder = folder
        self.accounting = accounting
        self._sockets: Path | None = None
        self._port = 0
        self._daemons: list[Daemon] = []

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._sockets = short_folder("run")
        self._start_munge()
        if self.accounting:
            self._start_database()
            self._start_slurmdbd()

    def stop(self) -> None:
        for daemon in reversed(self._daemons):
            daemon.kill()
        self._daemons.clear()
        if self._sockets is not None:
            shutil.rmtree(self._sockets, ignore_errors=True)
            self._sockets = None

    def sql(self, statements: str) -> str:
        """Run statements in the accounting database; return what they select."""
        line = ["mariadb", "--no-defaults", f"--socket={self._mysql}", "-N", "-B", "slurm_acct_db"]
        done = subprocess.run(line, input=statements, check=True, capture_output=True, text=True)
        return done.stdout

    def kill_slurmdbd(self) -> None:
        """End slurmdbd; the controllers go on."""
        self._daemons.pop().kill()

    def conf_lines(self) -> list[str]:
        lines = ["AuthType=auth/munge", "CredType=cred/munge", f"AuthInfo=socket={self._munge}"]
        if not self.accounting:
            return [*lines, "AccountingStorageType=accounting_storage/none"]
        return [
            *lines,
            "AccountingStorageType=accounting_storage/slurmdbd",
            f"AccountingStorageHost={LOOPBACK}",
            f"AccountingStoragePort={self._port}",
            # Not a password: the socket of the munged for slurmdbd.
            f"AccountingStoragePass={self._munge}",
        ]

    @property
    def _munge(self) -> str:
        return f"{self._sockets}/munge.sock"

    @property
    def _mysql(self) -> str:
        return f"{self._sockets}/mysql.sock"

    def _start_munge(self) -> None:
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        argv = [
            # The folders' modes are pytest's choice, not munge's.
            *(program("munged"), "--foreground", "--force", f"--socket={self._munge}"),
            *(f"--key-file={key}", f"--log-file={self.folder}/munged.log"),
            *(f"--pid-file={self._sockets}/munge.pid", f"--seed-file={self.folder}/munge.seed"),
        ]
        daemon = self._launch("munged", argv, {})
        await_("munged", lambda: listens(daemon, self._munge))

    def _start_database(self) -> None:
        data = self.folder / "mysql"
        innodb = [
            *("--innodb-log-file-size=4M", "--innodb-buffer-pool-size=64M"),
            *("--innodb-flush-method=nosync", "--innodb-flush-log-at-trx-commit=0"),
            *("--innodb-lock-wait-timeout=900", "--skip-name-resolve"),
        ]
        common = ["--no-defaults", f"--datadir={data}", f"--user={getpass.getuser()}", *innodb]
        install = [program("mariadb-install-db"), *common]
        install += ["--auth-root-authentication-method=normal", "--skip-test-db"]
        if not data.exists():
            subprocess.run([*install, "--cross-bootstrap"], check=True, capture_output=True)
        argv = [program("mariadbd"), *common, f"--socket={self._mysql}"]
        argv += ["--skip-networking", "--skip-grant-tables", f"--pid-file={self._mysql}.pid"]
        daemon = self._launch("mariadbd", argv, {})
        await_("mariadbd", lambda: listens(daemon, self._mysql))

    def _start_slurmdbd(self) -> None:
        (self._port,) = free_ports(1)
        conf = self.folder / "slurmdbd.conf"
        conf.touch(mode=0o600)
        conf.write_text("\n".join(self._slurmdbd_lines()) + "\n")
        # slurmdbd looks for its own configuration beside a slurm.conf that need not exist.
        env = {"SLURM_CONF": f"{self.folder}/slurm.conf", "MYSQL_UNIX_PORT": self._mysql}
        daemon = self._launch("slurmdbd", [program("slurmdbd"), "-D"], env)
        await_("slurmdbd", lambda: listens(daemon, (LOOPBACK, self._port)))

    def _slurmdbd_lines(self) -> list[str]:
        return [
            "AuthType=auth/munge",
            f"AuthInfo=socket={self._munge}",
            f"DbdHost={hostname()}",
            f"DbdAddr={LOOPBACK}",
            f"DbdPort={self._port}",
            f"SlurmUser={getpass.getuser()}",
            f"PidFile={self._sockets}/slurmdbd.pid",
            "StorageType=accounting_storage/mysql",
            "StorageHost=localhost",
            "StorageUser=root",
            "StorageLoc=slurm_acct_db",
        ]

    def _launch(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> Daemon:
        daemon = Daemon(name, argv, self.folder / f"{name}.out", env)
        self._daemons.append(daemon)
        daemon.start()
        return daemon
