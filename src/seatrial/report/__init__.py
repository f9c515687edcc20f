"""Make the acceptance report: one document of runs, results and decisions that both sides sign.

    report = gather([TrialFolder(path)], store)         # content.Report
    html.page(report), markdown.text(report), content.as_json(report)
    sign(Path("report.html"), key); verify(Path("report.html"), trials, signers=...)

The judgements are those of ``acceptance`` and ``studies``, as every other command shows them;
nothing is judged here.
"""
