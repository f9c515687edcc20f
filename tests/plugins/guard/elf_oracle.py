"""What pyelftools reads in programs: the guard (`guard.c`) must read the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from elftools.elf.segments import NoteSegment

MACHINES = {
    "EM_X86_64": "x86_64",
    "EM_AARCH64": "aarch64",
    "EM_PPC64": "ppc64",
    "EM_RISCV": "riscv",
    "EM_386": "i386",
}
OPENMP = {"libgomp.so.1": "gomp", "libomp.so.5": "llvm", "libiomp5.so": "intel"}


def elf_facts(path: Path) -> dict[str, str] | None:
    """Return machine, linkage, rpath, glibc, build_id, isa_level and openmp of a program of 64 bits
    (little-endian), those that are not there left out; None for any other file, and for one that
    pyelftools cannot read."""
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            if elf.elfclass != 64 or not elf.little_endian:
                return None
            machine = MACHINES.get(elf["e_machine"], "other")
            return {"machine": machine, **_of_segments(elf)}
    except (ELFError, OSError, AttributeError, AssertionError, KeyError, TypeError, ValueError):
        return None


def _of_segments(elf: ELFFile) -> dict[str, str]:
    found: dict[str, str] = {}
    needed: list[str] = []
    for segment in elf.iter_segments():
        if isinstance(segment, DynamicSegment):
            tags = {tag.entry.d_tag: tag for tag in segment.iter_tags()}
            needed = [str(getattr(tag, "needed", "")) for tag in segment.iter_tags("DT_NEEDED")]
            if run := tags.get("DT_RUNPATH"):
                found["rpath"] = str(getattr(run, "runpath", ""))
            elif old := tags.get("DT_RPATH"):
                found["rpath"] = str(getattr(old, "rpath", ""))
        elif isinstance(segment, NoteSegment):
            found |= dict(_of_notes(segment))
    found["linkage"] = "dynamic" if needed else "static"
    if openmp := next((OPENMP[name] for name in needed if name in OPENMP), ""):
        found["openmp"] = openmp
    if needed and (glibc := max(_glibc(elf), default=())):
        found["glibc"] = ".".join(map(str, glibc))
    return found


def _of_notes(segment: NoteSegment) -> Iterator[tuple[str, str]]:
    for note in segment.iter_notes():
        if note["n_type"] == "NT_GNU_BUILD_ID":
            yield "build_id", note["n_desc"]
        elif note["n_type"] == "NT_GNU_PROPERTY_TYPE_0":
            for each in note["n_desc"]:
                if each["pr_type"] == "GNU_PROPERTY_X86_ISA_1_NEEDED":
                    yield "isa_level", str(int(each["pr_data"]).bit_length())


def _glibc(elf: ELFFile) -> Iterator[tuple[int, ...]]:
    section = elf.get_section_by_name(".gnu.version_r")
    if not isinstance(section, GNUVerNeedSection):
        return
    for _, versions in section.iter_versions():
        for each in versions:
            kind, _, number = each.name.partition("_")
            if kind == "GLIBC" and number.replace(".", "").isdigit():
                yield tuple(map(int, number.split(".")))


def elf_files(folder: Path, every: int) -> Iterator[Path]:
    """Yield one of each ``every`` ELF files in a folder."""
    for path in sorted(folder.iterdir())[::every]:
        if path.is_file() and not path.is_symlink() and _is_elf(path):
            yield path


def _is_elf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False
