"""Earlier measurements of systems that no package registry has, on a machine of the same kind.

They were built from source by hand. The machine was busy with other work, so the figures show only
an order of magnitude.
"""
SYSTEMS = {
    "CXDB (snapshot of February 2026), with six syncs per append, as in its later versions": {
        "clients1": "1,250–1,600/s", "clients8": "1,400–1,500/s",
        "slow1": "133/s", "slow8": "136/s",
        "fork10": "114–164 µs", "fork1000": "114–164 µs", "fork10000": "114–164 µs",
        "path1000": "12–17 ms", "path10000": "129–165 ms",
        "open": "11.7–15.1 s (a million turns)", "memory": "489 MB (a million turns)",
        "disk": "976 B",
    },
    "CXDB, the same without syncs": {"lazy1": "8,200–10,800/s", "lazy8": "10,600–15,500/s"},
    "Neotoma 0.22.0, a message over HTTP": {
        "append1000": "16 ms", "grown": "16.6 KB (with its conversation and relation)",
    },
    "T3x, first version; version 0.6.0 on PostgreSQL": {"clients1": "47/s; 20/s"},
}
