"""The names of the metrics of what a matrix of all pairs shows about the network."""

from typing import Final

PREFIX: Final = "network_"
FINDINGS: Final = "network_findings"  # of all kinds together
WORDS: Final[dict[str, str]] = {
    "silent_nodes": "silent node",
    "cut_groups": "cut-off group",
    "mute_pairs": "mute pair",
    "slow_nodes": "slow node",
    "slow_links": "slow link",
    "slow_groups": "slow group pair",
}
