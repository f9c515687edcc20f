"""Every page, in one table. Each has a module in ``pages/`` and a template of the same name."""

from seatrial.web.page import Page

PAGES = (
    Page("/", "now", "now", "now.html"),
    Page("/trials", "trials", "trials", "trials.html", form=True),
    Page("/trials/{tag}", "trials", "trial", "trial.html", plots=True),
    Page("/trials/{tag}/utilisation", "trials", "trial_plots", function="utilisation"),
    Page("/trials/{tag}/in-flight", "trials", "trial_plots", function="in_flight"),
    Page("/trials/{tag}/elapsed", "trials", "trial_plots", function="elapsed"),
    Page("/trials/{tag}/loads", "trials", "trial_plots", function="loads"),
    Page("/trials/{tag}/tune", "trials", "tune", "tune.html"),
    Page("/failures", "failures", "failures", "failures.html", form=True, rows="failures"),
    Page("/runs", "runs", "runs", "runs.html", form=True, rows="runs"),
    Page("/runs/{trial}/{run_id}", "runs", "run", "run.html", form=True),
    Page("/machines", "machines", "machines", "machines.html", form=True),
    Page("/machines/{machine}", "machines", "machine", "machine.html", form=True),
    Page("/machines/{machine}/nodes/{node}", "machines", "node", "node.html", form=True),
    Page("/facts", "machines", "facts", "facts.html", form=True),
    Page("/network", "networks", "network", "networks.html", form=True, function="listed"),
    Page("/network/{trial}/{run_id}", "networks", "network", "network.html", form=True),
    Page("/network/{trial}/{run_id}/cells", "networks", "network", function="cells"),
    Page("/bands", "networks", "bands", "bands.html", form=True),
    Page("/compare", "compare", "compare", "compare.html", form=True),
    Page("/history", "history", "history", "history.html", form=True),
    Page("/matrix", "matrix", "matrix", "matrix.html", form=True),
    Page("/best", "best", "best", "best.html", form=True),
    Page("/ratio", "ratio", "ratio", "ratio.html", form=True),
    Page("/scaling", "scaling", "scaling", "scaling.html", form=True),
)
