"""Random access to memory in 4 KiB pages and in transparent huge pages, in turn, by the settings of
a test; and whether each run got the pages that it asked for. What is measured is CPU time, which
other work on the host lengthens less than the time by the clock."""

from __future__ import annotations

from statistics import median

from bench.measuring import SEATRIAL, Row, scratch, timed
from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.events import MetricRecorded, RunJudged
from seatrial.journal.journal import read
from seatrial.judge.statistics.two_samples import interval

ROUNDS = 8
SIZE_MIB = 1024
ACCESSES = 2_000_000
PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(void) {
  size_t words = ((size_t)SIZE << 20) / sizeof(size_t), at = 0, x = 88172645463325252u;
  size_t *a = malloc((size_t)SIZE << 20);
  for (size_t i = 0; i < words; i++) a[i] = i;
  struct timespec start, end;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
  for (int i = 0; i < COUNT; i++) {
    x ^= x << 13; x ^= x >> 7; x ^= x << 17;
    at ^= a[(x ^ at) % words];
  }
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  double ns = (end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec);
  printf("%zu access %.3f ns\\n", at & 1, ns / COUNT);
}
"""
TEST = f"""\
app: walk
parameters: {{pages: [4k, thp]}}
build: {{sources: [walk.c], script: gcc -O2 -DSIZE={SIZE_MIB} -DCOUNT={ACCESSES} -o walk walk.c}}
run: {{script: $BUILD/walk, pages: "{{pages}}", exclusive: true}}
metrics: {{access: {{find: 'access (\\S+) ns', unit: ns, better: lower}}}}
"""


def measure() -> list[Row]:
    with scratch() as folder:
        test = folder / "suite" / "walk"
        test.mkdir(parents=True)
        (test / "test.yaml").write_text(TEST)
        (test / "walk.c").write_text(PROGRAM)
        line = ["run", "suite", "-q", "--name", "pages", "--repeat", str(ROUNDS)]
        timed([*SEATRIAL, *line], folder)
        trial = TrialFolder(folder / "trials" / "pages")
        cases = {case.id: str(case.parameters["pages"]) for case in trial.cases()}
        figures: dict[str, list[float]] = {"4k": [], "thp": []}
        wrong = 0
        for event in read(trial.journal):
            if isinstance(event, MetricRecorded) and event.value is not None:
                figures[cases[event.case]].append(float(event.value))
            wrong += isinstance(event, RunJudged) and event.verdict != "pass"
    if min(map(len, figures.values())) < ROUNDS:
        raise SystemExit(f"pages: {wrong} runs did not pass; see transparent_hugepage/enabled")
    small, huge = (median(values) for values in figures.values())
    low, high = interval(figures["thp"], figures["4k"])
    return [
        Row(
            f"pages: random access to {SIZE_MIB} MiB, {ROUNDS} runs each in turn, CPU time",
            f"{huge:.1f} ns in transparent huge pages",
            f"{small:.1f} ns in 4 KiB pages",
            f"{small / huge:.2f} ({low:.2f}-{high:.2f})",
        )
    ]
