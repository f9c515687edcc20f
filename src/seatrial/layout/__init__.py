"""The layout of a node: its CPUs by core, NUMA domain and socket. Pure: texts and numbers in, a
layout out.

    layout = synthetic.parse("pack:2 numa:2 core:6 pu:1")     # hwloc's notation
    layout = hwloc_xml.parse(text)                            # the output of lstopo --of xml
    layout.domains                                            # {0: [0, 1, 2, 3, 4, 5], 1: ...}
"""
